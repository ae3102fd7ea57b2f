// SPDX-License-Identifier: Apache-2.0
import type { Sign, SignCause } from "../activation/sign.ts";
import type { BreakerMode } from "./breaker-mode.ts";
import { liftBreaker, promoteParked } from "./gate.ts";
import { keys } from "./names.ts";
import type { Queues } from "./queues.ts";
import { LUA_NOW, runScript, script } from "./script.ts";

// A run in which different activations fail alike, one after the other, closes its own gate instead of failing them all.
// From time to time one activation may try (gate.ts lets it in); its success opens the gate again. Whoever tells of the
// failure that is one too many opens the breaker: one script, so it happens once.

/** One time that the breaker was open. Times are ISO 8601, by the clock of Redis. */
export interface BreakerOpening extends SignCause {
  opened_at: string;
  /** Activations whose failures opened it. */
  activations: string[];
  /** Activations of the run that had no attempt yet. */
  untouched: number;
  /** Activations that tried meanwhile, and failed too. */
  trials: number;
  /** null: it is open still, or was closed by hand. */
  closed_at: string | null;
}

export interface BreakerState {
  /** The newest last. */
  openings: BreakerOpening[];
  /** Of the last opening, while it lasts. */
  open: { retry_in_ms: number | null } | null;
}

const MAX_OPENINGS = 100;
/** Instead of a time: the breaker stays open. Redis' clock will not reach it. */
const NEVER = 8_640_000_000_000_000;

/** Replies {charged, closed}. An early streak is one whose sessions failed before the model answered: an answer ends it. */
const TELL = script(`${LUA_NOW}
local gate, streak, openings, pending, touched = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local run, job, activation, kind, alike, opening = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local early, after, base, most, keep = ARGV[7], tonumber(ARGV[8]), tonumber(ARGV[9]), tonumber(ARGV[10]), ARGV[11]
local facts = redis.call('HMGET', gate, 'breaker_mode', 'breaker_until', 'breaker_trial', 'streak', 'streak_early')
local mode = facts[1] or 'auto'
if kind == 'answered' then kind = facts[5] == '1' and 'good' or 'none' end

local function note(change)
  local text = redis.call('LINDEX', openings, -1)
  if not text then return end
  local last = cjson.decode(text)
  change(last)
  redis.call('LSET', openings, -1, cjson.encode(last))
end

if facts[2] then
  local is_trial = facts[3] == job
  if is_trial and kind == 'good' then
    redis.call('HDEL', gate, 'breaker_until', 'breaker_trial', 'breaker_trials', 'streak', 'streak_early')
    redis.call('DEL', streak)
    note(function(last) last.closed_at = now end)
    return {1, 1}
  end
  if is_trial and kind == 'bad' then
    local trials = redis.call('HINCRBY', gate, 'breaker_trials', 1)
    local wait = math.min(most, base * 2 ^ trials)
    if mode == 'stop' then wait = ${NEVER} - now end
    redis.call('HSET', gate, 'breaker_until', string.format('%.0f', now + wait))
    redis.call('HDEL', gate, 'breaker_trial')
    note(function(last) last.trials = trials end)
  end
  return {kind == 'bad' and 0 or 1, 0}
end

if kind == 'good' then
  redis.call('HDEL', gate, 'streak', 'streak_early')
  redis.call('DEL', streak)
end
if kind ~= 'bad' or after == 0 or mode == 'off' then return {1, 0} end
if facts[4] ~= alike then redis.call('DEL', streak) end
redis.call('HSET', gate, 'streak', alike, 'streak_early', early)
redis.call('SADD', streak, activation)
redis.call('PEXPIRE', streak, keep)
if redis.call('SCARD', streak) < after then return {1, 0} end

local last = cjson.decode(opening)
last.opened_at, last.closed_at, last.trials = now, false, 0
last.activations = redis.call('SMEMBERS', streak)
last.untouched = redis.call('SCARD', pending) - redis.call('SCARD', touched)
redis.call('RPUSH', openings, cjson.encode(last))
redis.call('LTRIM', openings, -${MAX_OPENINGS}, -1)
redis.call('HSET', gate, 'breaker_until', string.format('%.0f', mode == 'stop' and ${NEVER} or now + base), 'breaker_trials', 0)
return {1, 0}
`);

export interface Teller {
  runId: string;
  jobId: string;
  activationId: string;
}

/**
 * Tells the run's breaker how an attempt ended, or that its model has answered for the first time. Not charged: the
 * breaker was open before, and the attempt only met what had opened it.
 */
export async function tellBreaker(
  queues: Queues,
  { runId, jobId, activationId }: Teller,
  sign: Sign | { kind: "answered" },
): Promise<{ charged: boolean }> {
  if (sign.kind === "none") return { charged: true };
  const { breaker_after, breaker_base_ms, breaker_max_ms, keep_ended_ms } = queues.settings;
  const cause = sign.kind === "bad" ? sign.cause : null;
  const alike = cause === null ? "" : `${cause.failure_kind}/${cause.cause_code}/${cause.answered}`;
  const early = cause?.answered === false ? 1 : 0;
  const names = [keys.gate(runId), keys.streak(runId), keys.openings(runId), keys.pending(runId), keys.touched(runId)];
  const limits = [breaker_after, breaker_base_ms, breaker_max_ms, keep_ended_ms];
  const args = [runId, jobId, activationId, sign.kind, alike, JSON.stringify(cause), early, ...limits];
  const [charged, closed] = (await runScript(queues.redis, TELL, names, args)) as [number, number];
  if (closed === 1) await promoteParked(queues, runId);
  return { charged: charged === 1 };
}

/** A new start of the run: its breaker is closed, whatever was, and works as given from now on. */
export async function setBreaker(queues: Queues, runId: string, mode: BreakerMode): Promise<void> {
  await queues.redis.hset(keys.gate(runId), "breaker_mode", mode);
  await liftBreaker(queues, runId);
  await promoteParked(queues, runId);
}

/** False: its producer has not said how it is to be, or Redis has lost that. */
export async function hasBreaker({ redis }: Queues, runId: string): Promise<boolean> {
  return (await redis.hexists(keys.gate(runId), "breaker_mode")) === 1;
}

export async function breakerState(queues: Queues, runId: string): Promise<BreakerState> {
  const { redis } = queues;
  const [texts, until, time] = await Promise.all([
    redis.lrange(keys.openings(runId), 0, -1),
    redis.hget(keys.gate(runId), "breaker_until"),
    redis.time(),
  ]);
  const now = Number(time[0]) * 1_000 + Math.floor(Number(time[1]) / 1_000);
  const retryAt = Number(until);
  const open = until === null ? null : { retry_in_ms: retryAt === NEVER ? null : Math.max(0, retryAt - now) };
  return { openings: texts.map(readOpening), open };
}

function readOpening(text: string): BreakerOpening {
  const { opened_at, closed_at, activations, ...facts } = JSON.parse(text) as StoredOpening;
  return {
    ...facts,
    opened_at: new Date(opened_at).toISOString(),
    closed_at: closed_at === false ? null : new Date(closed_at).toISOString(),
    activations: [...activations].sort(),
  };
}

/** As the script has it: times in ms; Lua has no null. */
type StoredOpening = Omit<BreakerOpening, "opened_at" | "closed_at"> & { opened_at: number; closed_at: number | false };
