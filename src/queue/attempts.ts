// SPDX-License-Identifier: Apache-2.0
import type { Redis } from "ioredis";
import type { UnsavedAttempt } from "../activation/lost-attempt.ts";
import type { WorkerInfo } from "../contract/result.ts";
import type { Used } from "../activation/ports.ts";
import { RollcallError } from "../errors.ts";
import { keys, lockKey } from "./names.ts";
import { inPipeline } from "./pipeline.ts";
import { runScript, script } from "./script.ts";

// An attempt stays "open" from its start until its worker says how it left. One that is still open when the next claim
// comes was lost with its worker, and is charged. BullMQ's counters cannot tell: attemptsMade misses lost workers,
// attemptsStarted counts parkings. Of each attempt the ledger keeps who began it and when, until its attempt.json says so.

/** Fields of the ledger, followed by an attempt's number: {@link Begun} as JSON; there when its worker said that nothing was saved. */
const BEGUN = "begun:";
const LEFT = "left:";

interface Begun {
  worker: WorkerInfo | null;
  /** ISO 8601, by the worker's clock. */
  started_at: string;
}

// Fenced by the claim's lock: a process that was frozen between its claim and this must not count for whoever has it now.
// A claim that asks again gets what it got: the answer may have been lost with the connection.
const TAKE = script(`
if redis.call('GET', KEYS[2]) ~= ARGV[2] then return false end
local open = redis.call('HMGET', KEYS[1], 'open', 'claim')
local attempt
if open[1] and open[2] == ARGV[3] then
  attempt = tonumber(open[1])
else
  if open[1] then redis.call('HINCRBY', KEYS[1], 'charged', 1) end
  attempt = math.max(tonumber(redis.call('HGET', KEYS[1], 'next') or 0), tonumber(ARGV[1]))
  redis.call('HSET', KEYS[1], 'next', attempt + 1, 'open', attempt, 'claim', ARGV[3], '${BEGUN}' .. attempt, ARGV[4])
end
return {attempt, tonumber(redis.call('HGET', KEYS[1], 'charged') or 0), redis.call('HGETALL', KEYS[1])}
`);

// What it used is counted in the run's gate at the same time, so once.
const CLOSE = script(`
if redis.call('HGET', KEYS[1], 'open') == ARGV[1] then
  redis.call('HDEL', KEYS[1], 'open', 'claim')
  if ARGV[4] ~= '0' then redis.call('HINCRBY', KEYS[2], 'used_model_calls', ARGV[4]) end
  if ARGV[5] ~= '0' then redis.call('HINCRBY', KEYS[2], 'used_tokens', ARGV[5]) end
  redis.call('HINCRBY', KEYS[1], 'charged', ARGV[2])
  local begun = '${BEGUN}' .. ARGV[1]
  if ARGV[3] == '1' then
    redis.call('HDEL', KEYS[1], begun)
  elseif redis.call('HEXISTS', KEYS[1], begun) == 1 then
    redis.call('HSET', KEYS[1], '${LEFT}' .. ARGV[1], 1)
  end
end
return tonumber(redis.call('HGET', KEYS[1], 'charged') or 0)
`);

/**
 * Takes the next attempt number, at the start of a physical run. `floor` is the seeded attempt, or one more than the
 * last one known elsewhere. Numbers are never given twice; the count of charged attempts includes lost ones. Throws
 * RollcallError "claim_lost" when the job's lock is not (or no longer) that of this claim. `by`: for the record of one that
 * is lost. `unsaved`: earlier attempts of which the ledger does not know that their record was saved.
 */
export async function takeAttempt(
  redis: Redis,
  claim: { activationId: string; jobId: string; token: string; claimId: string },
  floor: number,
  by: WorkerInfo | null,
): Promise<{ attempt: number; charged: number; unsaved: UnsavedAttempt[] }> {
  const { activationId, jobId, token, claimId } = claim;
  const begun: Begun = { worker: by, started_at: new Date().toISOString() };
  const args = [floor, token, claimId, JSON.stringify(begun)];
  const taken = (await runScript(redis, TAKE, [keys.ledger(activationId), lockKey(jobId)], args)) as [number, number, string[]] | null;
  if (taken === null)
    throw new RollcallError("claim_lost", `the claim on ${activationId} was lost before its attempt began; whoever has it now runs it`);
  const [attempt, charged, flat] = taken;
  const fields = Object.fromEntries(flat.flatMap((field, index) => (index % 2 === 0 ? [[field, flat[index + 1]!]] : [])));
  return { attempt, charged, unsaved: unsavedIn(fields).filter((earlier) => earlier.attempt !== attempt) };
}

/** Attempts of which the ledger does not know that their record was saved; of one that nobody has, the last was lost too. */
export async function unsavedAttempts(redis: Redis, activationId: string): Promise<UnsavedAttempt[]> {
  return unsavedIn(await redis.hgetall(keys.ledger(activationId)));
}

/** When the attempt that runs began, of each activation; null: none does, or its record is saved. ISO 8601, by its worker's clock. */
export async function beganAt(
  redis: Redis,
  activations: readonly { activation_id: string; attempt: number | null }[],
): Promise<(string | null)[]> {
  const texts = (await inPipeline(redis, (pipeline) => {
    for (const { activation_id, attempt } of activations) pipeline.hget(keys.ledger(activation_id), `${BEGUN}${attempt ?? ""}`);
  })) as (string | null)[];
  return texts.map((text) => (text === null ? null : (JSON.parse(text) as Begun).started_at));
}

function unsavedIn(fields: Record<string, string>): UnsavedAttempt[] {
  return Object.entries(fields)
    .filter(([field]) => field.startsWith(BEGUN))
    .map(([field, text]) => {
      const attempt = Number(field.slice(BEGUN.length));
      return { attempt, lost: !(`${LEFT}${attempt}` in fields), ...(JSON.parse(text) as Begun) };
    });
}

/** How an attempt left. `saved`: its attempt.json is in the store. */
export interface AttemptEnd {
  charge: boolean;
  saved: boolean;
}

/** Notes how an attempt left and what it used; nothing happens when it was taken over meanwhile. Answers all charged so far. */
export async function closeAttempt(
  redis: Redis,
  { activationId, runId, attempt }: { activationId: string; runId: string; attempt: number },
  { charge, saved }: AttemptEnd,
  { model_calls, tokens }: Used,
): Promise<number> {
  const names = [keys.ledger(activationId), keys.gate(runId)];
  return (await runScript(redis, CLOSE, names, [attempt, charge ? 1 : 0, saved ? 1 : 0, model_calls, tokens])) as number;
}

/** For a job that nobody has: attempts charged, when its last one was lost and was one too many; else null. */
export async function exhaustedAt(redis: Redis, activationId: string, maxAttempts: number): Promise<number | null> {
  const [before, open] = await redis.hmget(keys.ledger(activationId), "charged", "open");
  const charged = Number(before ?? 0) + 1;
  return open != null && charged >= maxAttempts ? charged : null;
}

/** Counts one more fault of ours; answers how many there were. */
export async function countFault(redis: Redis, activationId: string): Promise<number> {
  return redis.hincrby(keys.ledger(activationId), "faults", 1);
}
