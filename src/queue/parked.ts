// SPDX-License-Identifier: Apache-2.0
import type { Queues } from "./queues.ts";

/** How many parked jobs are promoted at once. */
const BATCH = 500;

/**
 * Wakes as many jobs of a list of parked ones, the longest parked first, as `freeSlots` says. A woken job stays listed
 * until it takes its slot, so that two calls do not wake more than the slots: they wake the same ones.
 */
export async function wakeParked(queues: Queues, list: string, freeSlots: () => Promise<number>): Promise<void> {
  const free = await freeSlots();
  for (let from = 0; from < free; from += BATCH) {
    const jobIds = await queues.redis.zrange(list, String(from), String(Math.min(from + BATCH, free) - 1));
    const gone = await Promise.all(jobIds.map((jobId) => promote(queues, jobId)));
    const dead = jobIds.filter((_, index) => gone[index]);
    if (dead.length === 0) continue;
    await queues.redis.zrem(list, ...dead);
    return wakeParked(queues, list, freeSlots); // their places go to others
  }
}

/** True when there is no such job any more. */
async function promote(queues: Queues, jobId: string): Promise<boolean> {
  try {
    await queues.activations.getBackend().promote(jobId);
    return false;
  } catch {
    // Not delayed: it was woken before, is being parked just now, or has ended.
    return ["unknown", "completed", "failed"].includes(await queues.activations.getJobState(jobId));
  }
}
