// SPDX-License-Identifier: Apache-2.0
import { keys } from "./names.ts";
import { inPipeline } from "./pipeline.ts";
import type { Queues } from "./queues.ts";

/** What an activation waits for that BullMQ knows as delayed. */
export type WaitsFor =
  /** Its model server has as many sessions as it takes, or asked for a pause. */
  | "model_server"
  /** No worker that claimed it could run it. */
  | "able_worker"
  /** The pause before its next attempt. */
  | "next_attempt";

/** For delayed jobs that are not parked by their run; one answer each, in order. */
export async function waitsFor({ redis }: Queues, jobIds: readonly string[]): Promise<WaitsFor[]> {
  if (jobIds.length === 0) return [];
  const servers = await redis.smembers(keys.parkedServers);
  const replies = await inPipeline(redis, (pipeline) => {
    for (const jobId of jobIds) pipeline.exists(keys.unable(jobId));
    for (const server of servers) pipeline.zmscore(keys.modelParked(server), ...jobIds);
  });
  const atModels = replies.slice(jobIds.length) as (string | null)[][];
  return jobIds.map((_, index) => {
    if (atModels.some((scores) => scores[index] !== null)) return "model_server";
    return replies[index] === 1 ? "able_worker" : "next_attempt";
  });
}
