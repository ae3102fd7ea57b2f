// SPDX-License-Identifier: Apache-2.0
import type { Failure } from "../contract/failure.ts";
import { exhaustedAt } from "./attempts.ts";
import { removeWaiting } from "./cancel.ts";
import { attemptsLost } from "./end-without-run.ts";
import { keys } from "./names.ts";
import type { Queues } from "./queues.ts";

/**
 * Ends a job that waits, with this failure, without a worker. The reason is noted first, so that `final` finds it whoever
 * is killed in between; whoever comes second does the same. False: a worker has the job, or it has ended.
 */
export async function giveUp(queues: Queues, jobId: string, failure: Failure): Promise<boolean> {
  await queues.redis.set(keys.givenUp(jobId), JSON.stringify(failure), "PX", queues.settings.keep_ended_ms);
  return removeWaiting(queues, jobId);
}

/** null: its job was not taken out of the queue for a reason of ours. */
export async function readGivenUp(queues: Queues, jobId: string): Promise<Failure | null> {
  const text = await queues.redis.get(keys.givenUp(jobId));
  return text === null ? null : (JSON.parse(text) as Failure);
}

/** Ends a job whose lost workers have used up its attempts. False: it may run again, or somebody has it. */
export async function endIfExhausted(queues: Queues, jobId: string): Promise<boolean> {
  const job = await queues.activations.getJob(jobId);
  if (job === undefined) return false;
  const { activation_id, max_attempts } = job.data.activation;
  const charged = await exhaustedAt(queues.redis, activation_id, Number(max_attempts));
  return charged !== null && giveUp(queues, jobId, attemptsLost(charged));
}
