// SPDX-License-Identifier: Apache-2.0
import type { Failure } from "../contract/failure.ts";
import type { Lack } from "./claim.ts";
import { failure } from "./end-without-run.ts";
import { keys } from "./names.ts";
import type { Queues } from "./queues.ts";
import { liveWorkers, type WorkerFacts } from "./worker-lease.ts";

/**
 * For a job that the asking worker cannot run: null = it waits on, because some live worker can or it has not waited
 * long; otherwise its end, which lists what was missing.
 */
export async function noCapableWorker(queues: Queues, jobId: string, lacks: readonly Lack[]): Promise<Failure | null> {
  const capable = (await liveWorkers(queues)).some((worker) => lacks.every((lack) => has(worker, lack)));
  if (capable) {
    await queues.redis.del(keys.unable(jobId));
    return null;
  }
  const [seconds] = await queues.redis.time();
  const now = Number(seconds) * 1_000;
  await queues.redis.set(keys.unable(jobId), now, "PX", queues.settings.keep_ended_ms, "NX");
  const since = Number((await queues.redis.get(keys.unable(jobId))) ?? now);
  if (now - since < queues.settings.no_capable_worker_ms) return null;
  const waited = `no live worker could run it for ${Math.round((now - since) / 1_000)} s`;
  return failure("agent_run_error", "secret_key_missing" as const, `${waited}; missing: ${lacks.map(describe).join(", ")}`);
}

function has(worker: WorkerFacts, lack: Lack): boolean {
  return "key_id" in lack ? worker.key_ids.includes(lack.key_id) : worker.schema_minor >= lack.schema_minor;
}

function describe(lack: Lack): string {
  return "key_id" in lack ? `secret key ${lack.key_id}` : `a worker that knows schema minor ${lack.schema_minor}`;
}
