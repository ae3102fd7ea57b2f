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
  /** Sessions at once. Absent: a worker of an earlier version. */
  concurrency?: number | undefined;
}

const RENEW = script(`${LUA_NOW}
redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[2])
redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[3])
redis.call('DEL', KEYS[3])
`);

const LIVE = script(`${LUA_NOW}
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
return redis.call('ZRANGE', KEYS[1], 0, -1)
`);

/** An absence that nobody has looked at for so long begins anew: it must not end what was queued a moment ago. */
const ABSENCE_KEPT_MS = 180_000;

const ABSENT = script(`${LUA_NOW}
if redis.call('ZCOUNT', KEYS[1], now, '+inf') > 0 then redis.call('DEL', KEYS[2]) return -1 end
redis.call('SET', KEYS[2], now, 'NX')
redis.call('PEXPIRE', KEYS[2], ARGV[1])
return now - redis.call('GET', KEYS[2])
`);

/** Publishes or extends a worker's lease; it lasts for the lock's duration. */
export async function renewWorkerLease(queues: Queues, facts: WorkerFacts): Promise<void> {
  const args = [JSON.stringify(facts), queues.settings.lock_duration_ms, facts.worker_id];
  await runScript(queues.redis, RENEW, [keys.workers, keys.worker(facts.worker_id), keys.noWorker], args);
}

export async function dropWorkerLease(queues: Queues, workerId: string): Promise<void> {
  await queues.redis.multi().zrem(keys.workers, workerId).del(keys.worker(workerId)).exec();
}

/** All workers whose leases are in force. */
export async function liveWorkers(queues: Pick<Queues, "redis">): Promise<WorkerFacts[]> {
  const ids = (await runScript(queues.redis, LIVE, [keys.workers], [])) as string[];
  const leases = ids.length === 0 ? [] : await queues.redis.mget(ids.map((id) => keys.worker(id)));
  return leases.flatMap((text) => (text === null ? [] : [JSON.parse(text) as WorkerFacts]));
}

/** How long no worker has lived, in ms, as far as anybody was looking; null = one lives. */
export async function workersAbsentMs(queues: Queues): Promise<number | null> {
  const absent = (await runScript(queues.redis, ABSENT, [keys.workers, keys.noWorker], [ABSENCE_KEPT_MS])) as number;
  return absent < 0 ? null : absent;
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
