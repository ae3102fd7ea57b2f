// SPDX-License-Identifier: Apache-2.0
import type { SecretKeys } from "../activation/secret-keys.ts";
import type { ArtifactStore } from "../artifacts/types.ts";
import type { SessionActivation } from "../contract/activation.ts";
import { activationJobId } from "../contract/identity.ts";
import { enqueueActivations, type EnqueueAnswer } from "./enqueue.ts";
import { FINAL, finalJobId, keys as names } from "./names.ts";
import type { Queues } from "./queues.ts";

/**
 * Like enqueueActivations, but activations that have ended get a new generation; their older result is set aside first.
 * One that has not ended is joined. Twice at once makes one new generation.
 */
export async function enqueueAgain(
  queues: Queues,
  store: ArtifactStore,
  activations: readonly SessionActivation[],
  options: { keys: SecretKeys },
): Promise<EnqueueAnswer[]> {
  const byGeneration = new Map<number, SessionActivation[]>();
  for (const activation of activations) {
    const generation = await nextGeneration(queues, store, activation.activation_id);
    byGeneration.set(generation, [...(byGeneration.get(generation) ?? []), activation]);
  }
  const answers = new Map<string, EnqueueAnswer>();
  for (const [generation, group] of byGeneration) {
    for (const answer of await enqueueActivations(queues, group, { ...options, generation })) answers.set(answer.activation_id, answer);
  }
  return activations.map(({ activation_id }) => answers.get(activation_id)!);
}

/** Of an activation that is about to be queued; an older end is set aside. */
export async function nextGeneration(queues: Queues, store: ArtifactStore, activationId: string): Promise<number> {
  const committed = (await store.readCommit(activationId))?.generation ?? -1;
  const queued = Number((await queues.redis.hget(names.ledger(activationId), "generation")) ?? -1);
  const latest = Math.max(committed, queued);
  if (latest === -1) return firstWithoutEnd(store, activationId);
  if (committed < latest && !(await hasEnded(queues, activationJobId(activationId, latest)))) return latest;
  if (committed === latest) await store.setAside(activationId, latest);
  return latest + 1;
}

/** For a Redis that lost its data: a generation whose end was set aside has ended. */
async function firstWithoutEnd(store: ArtifactStore, activationId: string): Promise<number> {
  let generation = 0;
  while ((await store.readCommitted(activationId, generation)) !== null) generation++;
  return generation;
}

/** True too for one that Redis knows nothing of any more. */
async function hasEnded(queues: Queues, jobId: string): Promise<boolean> {
  const [added, ended] = await queues.redis.hmget(names.job(FINAL, finalJobId(jobId)), "timestamp", "finishedOn");
  return added == null || ended != null;
}
