// SPDX-License-Identifier: Apache-2.0
import { setTimeout as delay } from "node:timers/promises";
import { keys } from "./names.ts";
import type { Queues } from "./queues.ts";

const LOOK_MS = 100;

/** How many of a run's activations have not ended. */
export function countPending({ redis }: Queues, runId: string): Promise<number> {
  return redis.scard(keys.pending(runId));
}

/** The same, with rollouts that have no activation in the queue: 0 when all of the run is over. */
export async function countOpen({ redis }: Queues, runId: string): Promise<number> {
  const counts = await Promise.all([redis.scard(keys.rollouts(runId)), redis.scard(keys.pending(runId))]);
  return Math.max(...counts);
}

/**
 * Waits until `count` is 0, or has not become less for `quietMs`. Answers the last count.
 */
export async function untilNone(count: () => Promise<number>, quietMs: number): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  let changedAt = performance.now();
  for (;;) {
    const left = await count();
    if (left === 0) return 0;
    if (left < least) [least, changedAt] = [left, performance.now()];
    else if (performance.now() - changedAt > quietMs) return left;
    await delay(LOOK_MS);
  }
}
