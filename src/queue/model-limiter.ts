// SPDX-License-Identifier: Apache-2.0
import { modelBaseUrl } from "../codex/config.ts";
import type { SessionActivation } from "../contract/activation.ts";
import { keys } from "./names.ts";
import { wakeParked } from "./parked.ts";
import { inPipeline } from "./pipeline.ts";
import type { Queues } from "./queues.ts";
import { inPieces } from "./scan.ts";
import { LUA_NOW, runScript, script } from "./script.ts";

// How many sessions talk to one model server at once, over all workers and runs. Without a setting any number, until the
// server says that it is too many: then half of them, after the pause it asks for, and one more with each quiet
// `model_grow_ms`. Sessions that ran into the same overload halve it once: they carry the epoch in which they began.

/** A session's place at its model server. */
export interface ModelSlot {
  /** Origin of the server's URL. */
  server: string;
  epoch: number;
}

/** Lua: `limit` = sessions that may run at once (nil = any number), `held` = ms until the next may begin. ARGV: "" or max, grow. */
const LUA_LIMIT = `${LUA_NOW}
local hash, running, parked = KEYS[1], KEYS[2], KEYS[3]
local max, grow = tonumber(ARGV[1]), tonumber(ARGV[2])
local facts = redis.call('HMGET', hash, 'limit', 'since', 'held_until', 'epoch', 'strikes')
local limit, since, held_until = tonumber(facts[1]), tonumber(facts[2]), tonumber(facts[3]) or 0
local epoch, strikes = tonumber(facts[4]) or 0, tonumber(facts[5]) or 0
if limit then limit = limit + math.max(0, math.floor((now - since) / grow)) end
if max and (not limit or limit > max) then limit = max end
local held = math.max(0, held_until - now)
redis.call('ZREMRANGEBYSCORE', running, '-inf', now)
`;

const ENTER = script(`${LUA_LIMIT}
local job, lease = ARGV[3], ARGV[4]
local others = redis.call('ZCARD', running) - (redis.call('ZSCORE', running, job) and 1 or 0)
if held == 0 and (not limit or others < limit) then
  redis.call('ZADD', running, now + lease, job)
  redis.call('ZREM', parked, job)
  return epoch
end
redis.call('ZREM', running, job)
redis.call('ZADD', parked, 'NX', now, job)
redis.call('SADD', KEYS[4], ARGV[5])
return -1
`);

const FREE_SLOTS = script(`${LUA_LIMIT}
if redis.call('EXISTS', parked) == 0 then redis.call('SREM', KEYS[4], ARGV[3]) return 0 end
if held > 0 then return 0 end
local waiting = redis.call('ZCARD', parked)
return limit and math.max(0, math.min(waiting, limit - redis.call('ZCARD', running))) or waiting
`);

const REFUSED = script(`${LUA_LIMIT}
local job, began, wait, base, most, keep = ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7]), ARGV[8]
local first = epoch == began
if first then
  local there = redis.call('ZCARD', running)
  limit, epoch, strikes = math.max(1, math.floor(math.min(limit or there, there) / 2)), epoch + 1, strikes + 1
  if wait < 0 then wait = math.min(most, base * 2 ^ (strikes - 1)) end
end
held_until = math.max(held_until, now + math.max(0, wait))
redis.call('HSETNX', hash, 'refusing', now)
redis.call('HSET', hash, 'limit', limit or 1, 'since', math.max(held_until, now), 'held_until', held_until, 'epoch', epoch, 'strikes', strikes)
redis.call('PEXPIRE', hash, keep)
redis.call('ZREM', running, job)
redis.call('ZADD', parked, 'NX', now, job)
for i = 4, 5 do redis.call('SADD', KEYS[i], ARGV[9]) end
return {math.ceil(held_until - now), limit or 1, first and 1 or 0}
`);

const SERVED = script(`
if (redis.call('HGET', KEYS[1], 'epoch') or '0') == ARGV[1] then redis.call('HDEL', KEYS[1], 'strikes') end
redis.call('HDEL', KEYS[1], 'refusing')
redis.call('SREM', KEYS[2], ARGV[2])
return 0
`);

const STATE = script(`${LUA_LIMIT}
return {limit or -1, redis.call('ZCARD', running), redis.call('ZCARD', parked), math.ceil(held)}
`);

/** The server an activation talks to: one limit for all paths and keys of an origin. */
export function modelServerOf({ model }: Pick<SessionActivation, "model">): string {
  return new URL(modelBaseUrl(model, "capture-key")).origin;
}

/** Takes a place at the server, leased for the lock's duration; null: there is none now, and the job is listed as parked. */
export async function enterModel(queues: Queues, server: string, jobId: string): Promise<ModelSlot | null> {
  const epoch = Number(await run(queues, ENTER, server, [jobId, queues.settings.lock_duration_ms, server]));
  return epoch < 0 ? null : { server, epoch };
}

/** Takes a job off the list of parked ones: something else keeps it, and it must not be woken in another's place. */
export async function forgetParkedAtModel(queues: Queues, server: string, jobId: string): Promise<void> {
  await queues.redis.zrem(keys.modelParked(server), jobId);
}

/** Gives the place back. `served`: the server did its part, so its next pause is a short one again. */
export async function leaveModel(queues: Queues, { server, epoch }: ModelSlot, jobId: string, options: { served: boolean }): Promise<void> {
  await queues.redis.zrem(keys.modelRunning(server), jobId);
  if (options.served) await runScript(queues.redis, SERVED, [keys.model(server), keys.refusingServers], [epoch, server]);
  await wakeForModel(queues, server);
}

/**
 * The server refused a session of this place because it has too many: gives the place back, halves the limit and stops
 * new sessions for `waitMs`, or where it named no time for a pause that doubles from refusal to refusal.
 */
export async function refusedByModel(
  queues: Queues,
  { server, epoch }: ModelSlot,
  jobId: string,
  waitMs: number | null,
): Promise<{ waitMs: number; limit: number; first: boolean }> {
  const { retry_base_ms, retry_max_ms, keep_ended_ms } = queues.settings;
  const args = [jobId, epoch, waitMs ?? -1, retry_base_ms, retry_max_ms, keep_ended_ms, server];
  const [wait, limit, first] = (await run(queues, REFUSED, server, args)) as [number, number, number];
  return { waitMs: wait, limit, first: first === 1 };
}

/** Wakes as many parked jobs as the server has places. */
export async function wakeForModel(queues: Queues, server: string): Promise<void> {
  await wakeParked(queues, keys.modelParked(server), async () => Number(await run(queues, FREE_SLOTS, server, [server])));
}

/** The same for all servers: a pause ends by time alone, and whoever should have woken them may not have lived to. */
export async function wakeForAllModels(queues: Queues): Promise<void> {
  for (const server of await queues.redis.smembers(keys.parkedServers)) await wakeForModel(queues, server);
}

/** Servers that sessions wait for, or that refuse them; about `most`. Redis keeps no list of the others. */
export async function knownModelServers({ redis }: Queues, most: number): Promise<string[]> {
  const found = new Set<string>();
  for (const list of [keys.parkedServers, keys.refusingServers]) {
    for await (const piece of inPieces(redis.sscanStream(list, { count: 100 }), 100)) {
      for (const server of piece) found.add(server);
      if (found.size >= most) break;
    }
  }
  return [...found].slice(0, most);
}

export interface ModelState {
  /** Sessions that may run at once; null = any number. */
  limit: number | null;
  running: number;
  parked: number;
  /** Until a session may begin. */
  held_ms: number;
}

export async function modelState(queues: Queues, server: string): Promise<ModelState> {
  const [limit, running, parked, held_ms] = (await run(queues, STATE, server, [])) as [number, number, number, number];
  return { limit: limit < 0 ? null : limit, running, parked, held_ms };
}

/** A model server that has served no session since it began to refuse them. */
export interface RefusingModel {
  server: string;
  /** ISO 8601, by the clock of Redis: of the first refusal. */
  since: string;
  for_ms: number;
  /** Sessions that wait for it, of all runs. */
  waiting: number;
}

/** A server that is busy refuses, and then serves: only one that has served nobody for a while is worth a word. */
const REFUSING_TOLD_MS = 60_000;

/** Those that sessions wait for and that have refused, and served nobody, for a minute; the longest first. */
export async function refusingModels({ redis }: Queues): Promise<RefusingModel[]> {
  const servers = await redis.smembers(keys.refusingServers);
  if (servers.length === 0) return [];
  const [seconds] = await redis.time();
  const replies = await inPipeline(redis, (pipeline) => {
    for (const server of servers) pipeline.hget(keys.model(server), "refusing").zcard(keys.modelParked(server));
  });
  const refusing = servers.flatMap((server, index) => {
    const [since, waiting] = replies.slice(2 * index, 2 * index + 2) as [string | null, number];
    if (since === null) return []; // long ago
    return [{ server, since: new Date(Number(since)).toISOString(), for_ms: Number(seconds) * 1_000 - Number(since), waiting }];
  });
  return refusing.filter(({ for_ms, waiting }) => for_ms >= REFUSING_TOLD_MS && waiting > 0).sort((a, b) => a.since.localeCompare(b.since));
}

function run(queues: Queues, which: typeof ENTER, server: string, args: (string | number)[]): Promise<unknown> {
  const { model_max_concurrent, model_grow_ms } = queues.settings;
  const names = [keys.model(server), keys.modelRunning(server), keys.modelParked(server), keys.parkedServers, keys.refusingServers];
  return runScript(queues.redis, which, names, [model_max_concurrent ?? "", model_grow_ms, ...args]);
}
