// SPDX-License-Identifier: Apache-2.0
import { setTimeout as delay } from "node:timers/promises";
import type { Worker } from "bullmq";
import type { Queues } from "./queues.ts";

/** For BullMQ to tell Redis of what has just ended, and to hang up. */
const HANG_UP_MS = 5_000;

/**
 * Closes a BullMQ worker within `graceMs` and a few seconds; its own close waits for jobs, and for a Redis that is away,
 * without a limit. False: `idle` did not come in time, and jobs are left behind as lost claims.
 */
export async function closeWorker(
  queues: Queues,
  worker: Pick<Worker, "pause" | "close">,
  options: { idle: () => Promise<unknown>; graceMs: number },
): Promise<boolean> {
  await worker.pause(true); // takes nothing new
  const ended = await Promise.race([options.idle().then(() => true), delay(options.graceMs, false, { ref: false })]);
  const force = !ended || queues.redis.status !== "ready";
  await Promise.race([worker.close(force), delay(HANG_UP_MS, undefined, { ref: false })]);
  return ended;
}
