// SPDX-License-Identifier: Apache-2.0
import { RollcallError } from "../errors.ts";
import { keys } from "./names.ts";
import type { Queues } from "./queues.ts";
import { LUA_NOW, runScript, script } from "./script.ts";

/** What a worker tells the others about itself. */
export interface WorkerFacts {
  worker_id: string;
  host: string;
  pid: number;
  /** Sandbox providers it can run. */
  providers: string[];
  codex_versions: string[];
  key_ids: string[];
  schema_minor: number;
  store_id: string;
  classes: string[];
  /** Why it takes nothing for now; null = it does. */
  held_back: string | null;
}

const RENEW = script(`${LUA_NOW}
redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[2])
redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[3])
`);

const LIVE = script(`${LUA_NOW}
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
return redis.call('ZRANGE', KEYS[1], 0, -1)
`);

/** Publishes or extends a worker's lease; it lasts for the lock's duration. */
export async function renewWorkerLease(queues: Queues, facts: WorkerFacts): Promise<void> {
  const args = [JSON.stringify(facts), queues.settings.lock_duration_ms, facts.worker_id];
  await runScript(queues.redis, RENEW, [keys.workers, keys.worker(facts.worker_id)], args);
}

export async function dropWorkerLease(queues: Queues, workerId: string): Promise<void> {
  await queues.redis.multi().zrem(keys.workers, workerId).del(keys.worker(workerId)).exec();
}

/** All workers whose leases are in force. */
export async function liveWorkers(queues: Queues): Promise<WorkerFacts[]> {
  const ids = (await runScript(queues.redis, LIVE, [keys.workers], [])) as string[];
  const leases = ids.length === 0 ? [] : await queues.redis.mget(ids.map((id) => keys.worker(id)));
  return leases.flatMap((text) => (text === null ? [] : [JSON.parse(text) as WorkerFacts]));
}

/** Throws RollcallError "store_mismatch" when a live worker of this Redis uses another artifact store. */
export async function requireSameStore(queues: Queues, storeId: string): Promise<void> {
  const other = (await liveWorkers(queues)).find(({ store_id }) => store_id !== storeId);
  if (other === undefined) return;
  throw new RollcallError(
    "store_mismatch",
    `worker ${other.worker_id} on ${other.host} keeps its artifacts in store ${other.store_id}, this one in ${storeId}: ` +
      "all workers of one Redis must share one artifact store",
  );
}
