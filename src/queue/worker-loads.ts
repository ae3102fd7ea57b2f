// SPDX-License-Identifier: Apache-2.0
import { ACTIVATIONS, keys } from "./names.ts";
import { inPipeline } from "./pipeline.ts";
import type { Queues } from "./queues.ts";
import { liveWorkers, type WorkerFacts } from "./worker-lease.ts";

/** A worker whose lease is in force, and what it does for one run. */
export interface WorkerLoad extends WorkerFacts {
  /** Its lease runs out then, unless renewed. */
  lease_ends_in_ms: number;
  /** Activations of the run that it has. */
  running: number;
}

/** All live workers of this Redis, busiest first. */
export async function workerLoads(queues: Queues, runId: string): Promise<WorkerLoad[]> {
  const { redis } = queues;
  const workers = await liveWorkers(queues);
  if (workers.length === 0) return [];
  const [seconds] = await redis.time();
  const now = Number(seconds) * 1_000;
  const leases = await redis.zmscore(keys.workers, ...workers.map(({ worker_id }) => worker_id));
  const jobIds = await redis.zrangebyscore(keys.running(runId), now, "+inf"); // as many as run at once
  const holders = (await inPipeline(redis, (pipeline) => {
    for (const jobId of jobIds) pipeline.hget(keys.job(ACTIVATIONS, jobId), "pb");
  })) as (string | null)[];
  return workers
    .map((worker, index) => ({
      ...worker,
      lease_ends_in_ms: Math.max(0, Number(leases[index] ?? now) - now),
      running: holders.filter((holder) => holder === worker.worker_id).length,
    }))
    .toSorted((a, b) => b.running - a.running || a.worker_id.localeCompare(b.worker_id));
}
