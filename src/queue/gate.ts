// SPDX-License-Identifier: Apache-2.0
import { keys } from "./names.ts";
import type { Queues } from "./queues.ts";
import { LUA_NOW, runScript, script } from "./script.ts";

/** How many parked jobs are promoted at once. */
const BATCH = 500;

/** What may be set of one run; null removes a limit. */
export interface RunGate {
  paused?: boolean;
  /** Most activations of the run that run at once. */
  limit?: number | null;
  /** Nothing starts after this instant (ms since 1970). */
  not_after?: number | null;
}

const ENTER = script(`${LUA_NOW}
local gate, running, parked, job = KEYS[1], KEYS[2], KEYS[3], ARGV[1]
redis.call('ZREMRANGEBYSCORE', running, '-inf', now)
local facts = redis.call('HMGET', gate, 'paused', 'limit', 'not_after')
local open = facts[1] ~= '1' and (not facts[3] or now <= tonumber(facts[3]))
if open and facts[2] then
  local others = redis.call('ZCARD', running) - (redis.call('ZSCORE', running, job) and 1 or 0)
  open = others < tonumber(facts[2])
end
if open then
  redis.call('ZADD', running, now + ARGV[2], job)
  redis.call('ZREM', parked, job)
  return 1
end
redis.call('ZREM', running, job)
redis.call('ZADD', parked, 'NX', now, job)
return 0
`);

const FREE_SLOTS = script(`${LUA_NOW}
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
local facts = redis.call('HMGET', KEYS[1], 'paused', 'limit', 'not_after')
if facts[1] == '1' or (facts[3] and now > tonumber(facts[3])) then return 0 end
local parked = redis.call('ZCARD', KEYS[3])
if not facts[2] then return parked end
return math.max(0, math.min(parked, tonumber(facts[2]) - redis.call('ZCARD', KEYS[2])))
`);

const RENEW = script(`${LUA_NOW}
for i, running in ipairs(KEYS) do redis.call('ZADD', running, now + ARGV[1], ARGV[i + 1]) end
`);

/** Takes a slot of the run, leased for `lease_ms`; false: the gate is closed and the job is now listed as parked. */
export async function enterGate(queues: Queues, runId: string, jobId: string): Promise<boolean> {
  const entered = await runScript(queues.redis, ENTER, gateKeys(runId), [jobId, queues.settings.lock_duration_ms]);
  return entered === 1;
}

/** Extends the slots of jobs that run here; also of one whose lease ran out meanwhile, because it does run. */
export async function renewSlots(queues: Queues, jobs: readonly { runId: string; jobId: string }[]): Promise<void> {
  if (jobs.length === 0) return;
  const running = jobs.map(({ runId }) => keys.running(runId));
  await runScript(queues.redis, RENEW, running, [queues.settings.lock_duration_ms, ...jobs.map(({ jobId }) => jobId)]);
}

/** Gives the slot back and lets parked jobs have it. */
export async function leaveGate(queues: Queues, runId: string, jobId: string): Promise<void> {
  await queues.redis.zrem(keys.running(runId), jobId);
  await promoteParked(queues, runId);
}

/** Pauses, opens or limits one run; parked jobs get the slots that are free then. What runs goes on. */
export async function setRunGate(queues: Queues, runId: string, gate: RunGate): Promise<void> {
  for (const [field, value] of Object.entries({ ...gate, ...(gate.paused === undefined ? {} : { paused: gate.paused ? 1 : null }) })) {
    if (value === null) await queues.redis.hdel(keys.gate(runId), field);
    else await queues.redis.hset(keys.gate(runId), field, String(value));
  }
  await promoteParked(queues, runId);
}

/**
 * Wakes as many parked jobs as the run has free slots. A woken job stays listed until it takes its slot, so that two
 * calls do not wake more than the slots: they wake the same ones.
 */
export async function promoteParked(queues: Queues, runId: string): Promise<void> {
  const free = Number(await runScript(queues.redis, FREE_SLOTS, gateKeys(runId), []));
  for (let from = 0; from < free; from += BATCH) {
    const jobIds = await queues.redis.zrange(keys.parked(runId), String(from), String(Math.min(from + BATCH, free) - 1));
    const gone = await Promise.all(jobIds.map((jobId) => promote(queues, jobId)));
    const dead = jobIds.filter((_, index) => gone[index]);
    if (dead.length === 0) continue;
    await queues.redis.zrem(keys.parked(runId), ...dead);
    return promoteParked(queues, runId); // their places go to others
  }
}

/** True when there is no such job any more. */
async function promote(queues: Queues, jobId: string): Promise<boolean> {
  try {
    await queues.activations.getBackend().promote(jobId);
    return false;
  } catch {
    // Not delayed: it was woken before, is being parked just now, or has ended.
    return ["unknown", "completed", "failed"].includes(await queues.activations.getJobState(jobId));
  }
}

function gateKeys(runId: string): string[] {
  return [keys.gate(runId), keys.running(runId), keys.parked(runId)];
}
