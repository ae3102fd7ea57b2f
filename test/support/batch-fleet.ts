// SPDX-License-Identifier: Apache-2.0
import { once } from "node:events";
import { createReadStream } from "node:fs";
import type { ArtifactStore } from "../../src/artifacts/types.ts";
import type { SessionActivation } from "../../src/contract/activation.ts";
import type { ActivationResult } from "../../src/contract/result.ts";
import type { BreakerState } from "../../src/queue/breaker.ts";
import type { BudgetState } from "../../src/queue/budget.ts";
import type { Fleet } from "../../src/rollout/fleet.ts";
import { resultOf } from "./result-documents.ts";

/**
 * A fleet without queue and workers for tests of the batch's own decisions: the store is real, `end` decides how each
 * activation ends (null = it never does). Ends come one after the other once workers are started.
 */
export function directFleet(
  store: ArtifactStore,
  end: (activation: SessionActivation, generation: number) => Partial<ActivationResult> | null,
): Fleet & { enqueued: string[]; stopped: boolean } {
  const waiting: { activation: SessionActivation; generation: number }[] = [];
  const ends: { activation_id: string; generation: number }[] = [];
  let wake = (): void => undefined;
  let started = false;
  let working: Promise<void> = Promise.resolve();

  async function work(): Promise<void> {
    for (;;) {
      const next = started ? waiting.shift() : undefined;
      if (next === undefined) return;
      const { activation, generation } = next;
      const { activation_id, run_id, task_id } = activation;
      const facts = end(activation, generation);
      if (facts === null) continue;
      await store.commit(resultOf(activation_id, { run_id, task_id, generation, ...facts }));
      ends.push({ activation_id, generation });
      wake();
    }
  }

  const fleet = {
    enqueued: [] as string[],
    stopped: false,
    async enqueue(activations: readonly SessionActivation[], { again }: { again: boolean }) {
      for (const activation of activations) {
        const before = again ? await store.readCommit(activation.activation_id) : null;
        waiting.push({ activation, generation: before === null ? 0 : before.generation + 1 });
        fleet.enqueued.push(activation.activation_id);
      }
      if (started) working = working.then(work);
      return activations.map(({ activation_id }) => ({ activation_id, outcome: "added" as const }));
    },
    refuse: () => Promise.resolve(),
    artifacts: store,
    putInput: ({ sha256, path }: { sha256: string; path: string }) => store.putInput(sha256, createReadStream(path)),
    async *follow(_runId: string, { signal }: { signal: AbortSignal }) {
      signal.addEventListener("abort", () => wake(), { once: true });
      for (let at = 0; !signal.aborted;) {
        if (at < ends.length) yield ends[at++]!;
        else {
          await new Promise<void>((resolve) => (wake = resolve));
        }
      }
    },
    async untilBegun(_activationId: string, { signal }: { signal: AbortSignal }) {
      // Nothing here ever only begins: it has ended, which the batch finds out by itself.
      if (!signal.aborted) await once(signal, "abort");
    },
    listEnded: () => store.listEnded(),
    readResult: (activationId: string) => store.readCommit(activationId),
    running: () => Promise.resolve(0),
    ending: () => Promise.resolve(0),
    setBudget: () => Promise.resolve(),
    budget: (): Promise<BudgetState> =>
      Promise.resolve({ max_model_calls: null, max_tokens: null, not_after: null, used: { model_calls: 0, tokens: 0 }, spent: null }),
    setBreaker: () => Promise.resolve(),
    breaker: () => Promise.resolve({ openings: [], open: null } as BreakerState),
    workersAbsentMs: () => Promise.resolve(null),
    refusingModels: () => Promise.resolve([]),
    pause: () => Promise.resolve(null),
    startWorkers() {
      started = true;
      working = work();
      return Promise.resolve();
    },
    async stopWorkers() {
      started = false;
      fleet.stopped = true;
      await working;
    },
    close: () => Promise.resolve(),
  };
  return fleet;
}
