// SPDX-License-Identifier: Apache-2.0
import { keys } from "./names.ts";
import type { Queues } from "./queues.ts";
import { wakeParked } from "./parked.ts";
import { LUA_NOW, runScript, script } from "./script.ts";

// Beside what people set and the run's budget (budget.ts), the run's breaker (breaker.ts) closes a gate: until `breaker_until` nothing enters, then one
// job at a time, the trial.

/** What may be set of one run; null removes a limit. */
export interface RunGate {
  paused?: boolean;
  /** Most activations of the run that run at once. */
  limit?: number | null;
}

/** Held back by people, by the clock, or because what attempts may use is used. */
const LUA_HELD = `
local function isHeld(gate)
  local facts = redis.call('HMGET', gate, 'paused', 'not_after', 'max_model_calls', 'used_model_calls', 'max_tokens', 'used_tokens')
  local function isUsedUp(most, used) return most and tonumber(used or '0') >= tonumber(most) end
  return facts[1] == '1' or (facts[2] and now > tonumber(facts[2])) or isUsedUp(facts[3], facts[4]) or isUsedUp(facts[5], facts[6])
end
`;

const ENTER = script(`${LUA_NOW}${LUA_HELD}
local gate, running, parked, job = KEYS[1], KEYS[2], KEYS[3], ARGV[1]
redis.call('ZREMRANGEBYSCORE', running, '-inf', now)
local facts = redis.call('HMGET', gate, 'limit', 'breaker_until', 'breaker_trial')
local open = not isHeld(gate)
local limit, broken, trial = facts[1], facts[2], facts[3]
if open and broken then
  open = now >= tonumber(broken) and (not trial or trial == job or not redis.call('ZSCORE', running, trial))
end
if open and limit then
  local others = redis.call('ZCARD', running) - (redis.call('ZSCORE', running, job) and 1 or 0)
  open = others < tonumber(limit)
end
if open then
  if broken then redis.call('HSET', gate, 'breaker_trial', job) end
  redis.call('ZADD', running, now + ARGV[2], job)
  redis.call('ZREM', parked, job)
  return 1
end
redis.call('ZREM', running, job)
redis.call('ZADD', parked, 'NX', now, job)
redis.call('SADD', KEYS[4], ARGV[3])
return 0
`);

const FREE_SLOTS = script(`${LUA_NOW}${LUA_HELD}
if redis.call('EXISTS', KEYS[3]) == 0 then redis.call('SREM', KEYS[4], ARGV[1]) return 0 end
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
if isHeld(KEYS[1]) then return 0 end
local facts = redis.call('HMGET', KEYS[1], 'limit', 'breaker_until', 'breaker_trial')
local limit, broken, trial = facts[1], facts[2], facts[3]
local parked = redis.call('ZCARD', KEYS[3])
if broken then
  if now < tonumber(broken) or (trial and redis.call('ZSCORE', KEYS[2], trial)) then return 0 end
  parked = math.min(parked, 1)
end
if not limit then return parked end
return math.max(0, math.min(parked, tonumber(limit) - redis.call('ZCARD', KEYS[2])))
`);

/** Takes a slot of the run, leased for `lease_ms`; false: the gate is closed and the job is now listed as parked. */
export async function enterGate(queues: Queues, runId: string, jobId: string): Promise<boolean> {
  const entered = await runScript(queues.redis, ENTER, gateKeys(runId), [jobId, queues.settings.lock_duration_ms, runId]);
  return entered === 1;
}

/** Gives the slot back and lets parked jobs have it. */
export async function leaveGate(queues: Queues, runId: string, jobId: string): Promise<void> {
  await queues.redis.zrem(keys.running(runId), jobId);
  await promoteParked(queues, runId);
}

/**
 * Pauses, opens or limits one run; parked jobs get the slots that are free then. What runs goes on. Who opens it by hand
 * also lifts what its breaker closed.
 */
export async function setRunGate(queues: Queues, runId: string, gate: RunGate): Promise<void> {
  for (const [field, value] of Object.entries({ ...gate, ...(gate.paused === undefined ? {} : { paused: gate.paused ? 1 : null }) })) {
    if (value === null) await queues.redis.hdel(keys.gate(runId), field);
    else await queues.redis.hset(keys.gate(runId), field, String(value));
  }
  if (gate.paused === false) await liftBreaker(queues, runId);
  await promoteParked(queues, runId);
}

/** Forgets that the run's breaker closed the gate, and the failures it counted. */
export async function liftBreaker(queues: Queues, runId: string): Promise<void> {
  const fields = ["breaker_until", "breaker_trial", "breaker_trials", "streak", "streak_early"];
  await queues.redis
    .multi()
    .hdel(keys.gate(runId), ...fields)
    .del(keys.streak(runId))
    .exec();
}

/** Wakes as many parked jobs as the run has free slots. */
export async function promoteParked(queues: Queues, runId: string): Promise<void> {
  await wakeParked(queues, keys.parked(runId), async () => Number(await runScript(queues.redis, FREE_SLOTS, gateKeys(runId), [runId])));
}

/** The same for all runs: what opens by time alone, and what whoever should have woken them did not live to. */
export async function promoteAllParked(queues: Queues): Promise<void> {
  for (const runId of await queues.redis.smembers(keys.parkedRuns)) await promoteParked(queues, runId);
}

function gateKeys(runId: string): string[] {
  return [keys.gate(runId), keys.running(runId), keys.parked(runId), keys.parkedRuns];
}
