// SPDX-License-Identifier: Apache-2.0
import { setTimeout as delay } from "node:timers/promises";
import type { ArtifactStore } from "../artifacts/types.ts";
import { isUnknown, unlessUnknown } from "../client/api-error.ts";
import type { Client } from "../client/client.ts";
import type { SessionActivation } from "../contract/activation.ts";
import { RollcallError } from "../errors.ts";
import type { BudgetState } from "../queue/budget.ts";
import { collectFiles, type Collect } from "./collect-files.ts";
import type { EnqueueAnswer, Fleet } from "./fleet.ts";
import { aborted } from "./waiting.ts";

/** Between two looks at a run of which nothing is queued yet, or of which all has ended. */
const PAUSE_MS = 500;
/** One answer serves all that is asked within this. */
const FRESH_MS = 400;
const NO_BUDGET: BudgetState = {
  max_model_calls: null,
  max_tokens: null,
  not_after: null,
  used: { model_calls: 0, tokens: 0 },
  spent: null,
};
const MOST_ENDS = 1_000_000;

/**
 * A fleet behind a server's API: its queue, its workers, its store. Results are brought into `store`, with the files that
 * `collect` says, before they are told of. The workers are not ours: nothing here starts or stops them.
 */
export function httpFleet(parts: {
  client: Client;
  runId: string;
  store: ArtifactStore;
  collect: Collect;
  say: (line: string) => void;
}): Fleet {
  const { client, runId, store, collect } = parts;
  const run = kept(() => unlessUnknown(client.run(runId)));
  const workers = kept(() => client.workers());

  return {
    enqueue: (activations, options) => enqueueThrough(client, activations, options),
    async refuse(row) {
      await client.recordRefused(runId, [row]);
    },
    artifacts: store,
    async putInput({ sha256, path }) {
      await client.putFile(sha256, path);
    },
    async *follow(id, { signal }) {
      let cursor: string | undefined;
      while (!signal.aborted) {
        try {
          const more = cursor === undefined ? {} : { cursor };
          for await (const line of client.results(id, { ...more, bare: true, follow: true, limit: MOST_ENDS, signal })) {
            cursor = line.cursor;
            yield line;
          }
        } catch (error) {
          if (signal.aborted) return;
          if (!isUnknown(error)) throw error; // nothing of it is queued yet
        }
        await delay(PAUSE_MS, undefined, { signal }).catch(() => undefined);
      }
    },
    async untilBegun(activationId, { signal }) {
      try {
        for await (const { stage } of client.events(activationId, { signal })) if (stage === "running") return;
      } catch (error) {
        if (!signal.aborted) throw error;
      }
      await aborted(signal);
    },
    async *listEnded() {
      try {
        for await (const { activation_id } of client.results(runId, { bare: true, limit: MOST_ENDS })) yield activation_id;
      } catch (error) {
        if (!isUnknown(error)) throw error;
      }
    },
    async readResult(activationId) {
      const result = await unlessUnknown(client.result(activationId));
      if (result !== null) await collectFiles({ client, store, collect, say: parts.say }, result);
      return result;
    },
    running: async () => (await run.recent())?.running ?? 0,
    ending: async () => (await run.recent())?.running ?? 0,
    async setBudget(id, { max_model_calls, max_tokens, starts_for_ms }, used) {
      const limits = Object.entries({ max_model_calls, max_tokens, starts_for_ms }).filter(([, limit]) => limit !== null);
      await client.setBudget(id, { ...Object.fromEntries(limits), used });
    },
    budget: async () => (await run.now())?.budget ?? NO_BUDGET, // what the last attempt used is wanted at a run's end,
    async setBreaker(id, mode) {
      await client.setBreaker(id, mode);
    },
    breaker: (id) => client.breaker(id),
    workersAbsentMs: async () => (await workers.recent()).absent_ms,
    refusingModels: async () => (await workers.recent()).refusing_models,
    pause: async () => (await run.recent())?.paused ?? null,
    async startWorkers() {
      if ((await workers.recent()).workers.length === 0) parts.say("no worker of the server lives: what is queued waits for one");
    },
    stopWorkers: () => Promise.resolve(),
    close: () => Promise.resolve(),
  };
}

/** Throws RollcallError "activation_refused" for what the server does not take, or ApiError; what came before it is queued. */
export async function enqueueThrough(
  client: Client,
  activations: readonly SessionActivation[],
  { again }: { again: boolean },
): Promise<EnqueueAnswer[]> {
  const { activations: answers } = await client.enqueue(activations, { partial: true, again });
  return answers.map(({ outcome, fields, no_worker_for, refusals = [] }, index): EnqueueAnswer => {
    const { activation_id } = activations[index]!;
    if (outcome === "refused") throw refusedByServer(activation_id, refusals);
    return {
      activation_id,
      outcome,
      ...(fields === undefined ? {} : { fields }),
      ...(no_worker_for === undefined ? {} : { no_worker_for }),
    };
  });
}

function refusedByServer(id: string, refusals: readonly { path: string; message: string; accepted: string }[]): RollcallError {
  const reasons = refusals
    .map(({ path, message, accepted }) => `${path === "" ? "" : `${path}: `}${message}; accepted: ${accepted}`)
    .join("; ");
  return new RollcallError("activation_refused", `the server does not take ${id}: ${reasons}`);
}

/** Asks now, or takes an answer that was asked for within {@link FRESH_MS}. */
function kept<T>(ask: () => Promise<T>): { now(): Promise<T>; recent(): Promise<T> } {
  let last: { at: number; answer: Promise<T> } | null = null;
  const now = (): Promise<T> => {
    last = { at: performance.now(), answer: ask() };
    return last.answer;
  };
  return { now, recent: () => (last !== null && performance.now() - last.at <= FRESH_MS ? last.answer : now()) };
}
