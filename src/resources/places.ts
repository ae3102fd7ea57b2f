// SPDX-License-Identifier: Apache-2.0
import { keys } from "../queue/names.ts";
import { inPipeline } from "../queue/pipeline.ts";
import type { Queues } from "../queue/queues.ts";
import { LUA_NOW, runScript, script } from "../queue/script.ts";

// A resources server holds something for each open session (GDPVal: a sandbox), so over all workers and runs only so many are
// open at once. A place is held from before the seed until after the close, by the rollout and not by a process: nothing renews it.

const TAKE = script(`${LUA_NOW}
local open, waiting = KEYS[1], KEYS[2]
if redis.call('ZSCORE', open, ARGV[1]) or redis.call('ZCARD', open) < tonumber(ARGV[2]) then
  redis.call('ZADD', open, 'NX', now, ARGV[1])
  redis.call('ZREM', waiting, ARGV[3])
  return 1
end
redis.call('ZADD', waiting, 'NX', now, ARGV[3])
return 0
`);

/** Oldest places that are looked at when there is none. */
const LOOKED_AT = 20;

/** Takes a place at `server` for a rollout, once. False: all are taken, and the job is listed as waiting. */
export async function takePlace(queues: Queues, server: string, activationId: string, jobId: string, most: number): Promise<boolean> {
  const names = [keys.openSessions(server), keys.waitingSteps(server)];
  const take = async (): Promise<boolean> => (await runScript(queues.redis, TAKE, names, [activationId, most, jobId])) === 1;
  if (await take()) return true;
  return (await freeForgotten(queues, server)) && take();
}

/** Gives it back, and wakes the job that has waited longest. Nothing happens when it is given back already. */
export async function leavePlace(queues: Queues, server: string, activationId: string): Promise<void> {
  if ((await queues.redis.zrem(keys.openSessions(server), activationId)) === 1) await wakeNext(queues, server);
}

async function wakeNext(queues: Queues, server: string): Promise<void> {
  for (;;) {
    const [jobId] = await queues.redis.zpopmin(keys.waitingSteps(server));
    if (jobId === undefined) return;
    try {
      await queues.steps.getBackend().promote(jobId);
      return;
    } catch {
      // Not delayed: it is being put there just now and looks again in a moment, or is gone. The next one then.
    }
  }
}

/** Places of rollouts that Redis knows nothing of any more: their run was removed. True when there were any. */
async function freeForgotten({ redis }: Queues, server: string): Promise<boolean> {
  const oldest = await redis.zrange(keys.openSessions(server), "0", String(LOOKED_AT - 1));
  const known = await inPipeline(redis, (pipeline) => {
    for (const id of oldest) pipeline.exists(keys.rollout(id));
  });
  const forgotten = oldest.filter((_, index) => known[index] === 0);
  if (forgotten.length > 0) await redis.zrem(keys.openSessions(server), ...forgotten);
  return forgotten.length > 0;
}
