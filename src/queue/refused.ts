// SPDX-License-Identifier: Apache-2.0
import type { ArtifactStore } from "../artifacts/types.ts";
import type { ActivationResult } from "../contract/result.ts";
import { announceEnd } from "./ended.ts";
import { findActivations } from "./find-activation.ts";
import type { Queues } from "./queues.ts";

/**
 * Records the end of a row that its producer could not queue, so that its run has as many ends as it has rows. What is in the queue, or
 * has ended in another way, stays as it is. Doing it twice records it once. Says whether it is recorded.
 */
export async function recordRefused(queues: Queues, store: ArtifactStore, refused: ActivationResult): Promise<boolean> {
  const [found] = await findActivations(queues, [refused.activation_id]);
  if (found!.state !== "unknown") return false;
  const { result } = await store.commit(refused);
  if (result.status !== "refused" || result.run_id !== refused.run_id) return false;
  await announceEnd(queues, result);
  return true;
}
