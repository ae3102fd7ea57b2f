// SPDX-License-Identifier: Apache-2.0
import type { Job } from "bullmq";
import type { Queues } from "../queue/queues.ts";
import type { PushJobData } from "./push.ts";

/** An end that could not be pushed, and will not be by itself. */
export interface DeadLetter {
  delivery_id: string;
  activation_id: string;
  generation: number;
  run_id: string;
  attempts: number;
  /** ISO 8601 */
  failed_at: string;
  reason: string;
}

export interface PushCounts {
  /** To be sent now, or again after a pause. */
  waiting: number;
  sending: number;
  sent: number;
  dead: number;
}

/** How a webhook's queue stands; `sent` as far as they are kept. */
export async function pushCounts(queues: Queues, name: string): Promise<PushCounts> {
  const {
    wait = 0,
    delayed = 0,
    active = 0,
    completed = 0,
    failed = 0,
  } = await queues.webhook(name).getJobCounts("wait", "delayed", "active", "completed", "failed");
  return { waiting: wait + delayed, sending: active, sent: completed, dead: failed };
}

/** The newest first. */
export async function deadLetters(
  queues: Queues,
  name: string,
  { offset, limit }: { offset: number; limit: number },
): Promise<DeadLetter[]> {
  const jobs = (await queues.webhook(name).getFailed(offset, offset + limit - 1)) as (Job<PushJobData> | undefined)[];
  return jobs.flatMap((job) => {
    if (job === undefined) return []; // it went meanwhile
    const { id, data, attemptsMade, finishedOn = 0, failedReason } = job;
    return [{ delivery_id: id!, ...data, attempts: attemptsMade, failed_at: new Date(finishedOn).toISOString(), reason: failedReason }];
  });
}

/** Queues dead letters again, those that are named, else the `most` that have been dead longest. Answers how many. */
export async function replayDead(
  queues: Queues,
  name: string,
  { ids, most }: { ids: readonly string[] | null; most: number },
): Promise<number> {
  const queue = queues.webhook(name);
  const wanted = ids ?? (await queues.redis.zrange(queue.toKey("failed"), "0", String(most - 1)));
  let replayed = 0;
  for (const id of wanted) {
    const job = await queue.getJob(id);
    // As a new one: it has all its tries again. Somebody else may replay it at the same time.
    const done = await job?.retry("failed", { resetAttemptsMade: true }).then(
      () => true,
      (error: unknown) => {
        if (error instanceof Error && /is not in the failed state|Missing key|is locked|not in failed/i.test(error.message)) return false;
        throw error;
      },
    );
    if (done === true) replayed += 1;
  }
  return replayed;
}
