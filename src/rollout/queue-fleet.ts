// SPDX-License-Identifier: Apache-2.0
import { createReadStream } from "node:fs";
import type { Logger } from "pino";
import type { SecretKeys } from "../activation/secret-keys.ts";
import type { ArtifactStore } from "../artifacts/types.ts";
import { refusedResult } from "../contract/refused.ts";
import { recordRefused } from "../queue/refused.ts";
import { breakerState, hasBreaker, setBreaker } from "../queue/breaker.ts";
import { readBudget, setBudget } from "../queue/budget.ts";
import { followRun } from "../queue/ended.ts";
import { enqueueAgain } from "../queue/enqueue-again.ts";
import { enqueueActivations } from "../queue/enqueue.ts";
import { refusingModels } from "../queue/model-limiter.ts";
import { readPause } from "../queue/pause.ts";
import { followProgress } from "../queue/progress.ts";
import type { Queues } from "../queue/queues.ts";
import { countRunning } from "../queue/run-status.ts";
import { liveWorkers, workersAbsentMs } from "../queue/worker-lease.ts";
import type { Fleet } from "./fleet.ts";

/** Workers of this process, started and stopped as one. */
export interface LocalWorkers {
  /** `drains`: what runs may end, for as long as the settings say. */
  stop(options: { now: boolean; drains?: boolean }): Promise<void>;
}

/** A fleet over the real queue. `startWorkers`: null = other processes do the work. `close` runs last. */
export function queueFleet(parts: {
  queues: Queues;
  store: ArtifactStore;
  keys: SecretKeys;
  runId: string;
  startWorkers: (() => Promise<LocalWorkers>) | null;
  log: Logger;
  /** Rejects when Redis is gone for good. */
  lost: Promise<never>;
  close: () => Promise<void>;
}): Fleet {
  const { queues, store, keys, log } = parts;
  let workers: Promise<LocalWorkers> | null = null;

  let stopped: Promise<void> | null = null;

  function stopWorkers({ now }: { now: boolean }): Promise<void> {
    const stop = async (): Promise<void> => {
      const started = await workers?.catch(() => null); // whoever started them was told
      await started?.stop({ now });
    };
    if (now || stopped === null) stopped = stop();
    return stopped;
  }

  return {
    enqueue: (activations, { again }) =>
      again ? enqueueAgain(queues, store, activations, { keys }) : enqueueActivations(queues, activations, { keys, store }),
    async refuse(row) {
      await recordRefused(queues, store, refusedResult(parts.runId, row, new Date()));
    },
    artifacts: store,
    putInput: ({ sha256, path }) => store.putInput(sha256, createReadStream(path)),
    async *follow(runId, { signal }) {
      const gone = new AbortController();
      parts.lost.catch((error: unknown) => gone.abort(error));
      yield* followRun(queues, runId, { signal: AbortSignal.any([signal, gone.signal]) });
      gone.signal.throwIfAborted();
    },
    async untilBegun(activationId, { signal }) {
      // An attempt that fails before its turn goes from "starting" to "ended", and another one may follow.
      for await (const { stage } of followProgress(queues, activationId, { signal })) if (stage === "running") return;
    },
    listEnded: () => store.listEnded(),
    readResult: (activationId) => store.readCommit(activationId),
    running: (runId) => countRunning(queues, runId),
    ending: (runId) => countRunning(queues, runId),
    setBudget: (runId, budget, used) => setBudget(queues, runId, budget, used),
    budget: (runId) => readBudget(queues, runId),
    setBreaker: (runId, mode) => setBreaker(queues, runId, mode),
    breaker: (runId) => breakerState(queues, runId),
    forgotten: async (runId) => !(await hasBreaker(queues, runId)),
    workersAbsentMs: () => workersAbsentMs(queues),
    refusingModels: () => refusingModels(queues),
    pause: (runId) => readPause(queues, runId),
    async startWorkers() {
      if (parts.startWorkers === null) {
        const live = await liveWorkers(queues);
        if (live.length === 0) log.warn("no worker of this Redis lives: start one with `rollcall worker`; what is queued waits for it");
        return;
      }
      workers ??= parts.startWorkers();
      await workers;
    },
    stopWorkers,
    async close() {
      await stopWorkers({ now: false });
      await parts.close();
    },
  };
}
