// SPDX-License-Identifier: Apache-2.0
import type { SecretKeys } from "../activation/secret-keys.ts";
import type { ArtifactStore } from "../artifacts/types.ts";
import type { Queues } from "../queue/queues.ts";
import { runStatus } from "../queue/run-status.ts";
import { readRolloutResult } from "../resources/documents.ts";
import { enqueueRollouts } from "../resources/enqueue-rollouts.ts";
import { countPhases } from "../resources/record.ts";
import type { ResourcesServer } from "../resources/server.ts";
import type { RolloutSteps } from "../resources/steps.ts";
import type { Fleet } from "./fleet.ts";

/** Looks into the store for ends, at once. */
const LOOKS = 8;

/**
 * The same fleet for a run whose rollouts a resources server seeds and scores: what is enqueued is a rollout, and it has ended
 * when it is verified and its session closed, not when its activation has.
 */
export function resourcesFleet(
  base: Fleet,
  parts: { queues: Queues; store: ArtifactStore; keys: SecretKeys; steps: RolloutSteps; server: ResourcesServer },
): Fleet {
  const { queues, store, steps } = parts;
  const readResult = (activationId: string): ReturnType<Fleet["readResult"]> => readRolloutResult(store, activationId);
  return {
    ...base,
    enqueue: (activations, { again, rows }) =>
      enqueueRollouts(
        parts,
        activations.map((activation) => ({ activation, row: rows.get(activation.activation_id) ?? {} })),
        { again },
      ),
    readResult,
    async *listEnded() {
      const look = async (ids: readonly string[]): Promise<string[]> => {
        const results = await Promise.all(ids.map(readResult));
        return ids.filter((_, index) => results[index] !== null);
      };
      let batch: string[] = [];
      for await (const id of base.listEnded()) {
        batch.push(id);
        if (batch.length < LOOKS) continue;
        yield* await look(batch);
        batch = [];
      }
      yield* await look(batch);
    },
    async ending(runId) {
      const { seeding, activation, verifying, closing } = await countPhases(queues, runId);
      const { parked, delayed } = await runStatus(queues, runId);
      // Whatever is not put off runs, or has ended and its rollout has not noticed yet.
      return seeding + Math.max(0, activation - parked - delayed) + verifying + closing;
    },
    phases: (runId) => countPhases(queues, runId),
    async stopWorkers(options) {
      await steps.pause(); // else what is handed back is seeded anew while this process stops
      await base.stopWorkers(options);
    },
  };
}
