// SPDX-License-Identifier: Apache-2.0
import type { Redis } from "ioredis";
import { RollcallError } from "../errors.ts";
import { keys, lockKey } from "./names.ts";
import { runScript, script } from "./script.ts";

// An attempt stays "open" from its start until its worker says how it left. One that is still open when the next claim
// comes was lost with its worker, and is charged. BullMQ's counters cannot tell: attemptsMade misses lost workers,
// attemptsStarted counts parkings.

// Fenced by the claim's lock: a process that was frozen between its claim and this must not count for whoever has it now.
// A claim that asks again gets what it got: the answer may have been lost with the connection.
const TAKE = script(`
if redis.call('GET', KEYS[2]) ~= ARGV[2] then return false end
local open = redis.call('HMGET', KEYS[1], 'open', 'claim', 'charged')
if open[1] and open[2] == ARGV[3] then return {tonumber(open[1]), tonumber(open[3] or 0)} end
if open[1] then redis.call('HINCRBY', KEYS[1], 'charged', 1) end
local attempt = math.max(tonumber(redis.call('HGET', KEYS[1], 'next') or 0), tonumber(ARGV[1]))
redis.call('HSET', KEYS[1], 'next', attempt + 1, 'open', attempt, 'claim', ARGV[3])
return {attempt, tonumber(redis.call('HGET', KEYS[1], 'charged') or 0)}
`);

const CLOSE = script(`
if redis.call('HGET', KEYS[1], 'open') == ARGV[1] then
  redis.call('HDEL', KEYS[1], 'open', 'claim')
  redis.call('HINCRBY', KEYS[1], 'charged', ARGV[2])
end
return tonumber(redis.call('HGET', KEYS[1], 'charged') or 0)
`);

/**
 * Takes the next attempt number, at the start of a physical run. `floor` is the seeded attempt, or one more than the
 * last one known elsewhere. Numbers are never given twice; the count of charged attempts includes lost ones. Throws
 * RollcallError "claim_lost" when the job's lock is not (or no longer) that of this claim.
 */
export async function takeAttempt(
  redis: Redis,
  claim: { activationId: string; jobId: string; token: string; claimId: string },
  floor: number,
): Promise<{ attempt: number; charged: number }> {
  const { activationId, jobId, token, claimId } = claim;
  const taken = (await runScript(redis, TAKE, [keys.ledger(activationId), lockKey(jobId)], [floor, token, claimId])) as
    | [number, number]
    | null;
  if (taken === null)
    throw new RollcallError("claim_lost", `the claim on ${activationId} was lost before its attempt began; whoever has it now runs it`);
  const [attempt, charged] = taken;
  return { attempt, charged };
}

/** Notes how an attempt left; nothing happens when it was taken over meanwhile. Answers all charged so far. */
export async function closeAttempt(redis: Redis, activationId: string, attempt: number, options: { charge: boolean }): Promise<number> {
  return (await runScript(redis, CLOSE, [keys.ledger(activationId)], [attempt, options.charge ? 1 : 0])) as number;
}

/** Attempts charged so far, a lost one included, and whether the last one was lost. */
export async function chargedSoFar(redis: Redis, activationId: string): Promise<{ charged: number; lost: boolean }> {
  const [charged, open] = await redis.hmget(keys.ledger(activationId), "charged", "open");
  const lost = open != null;
  return { charged: Number(charged ?? 0) + (lost ? 1 : 0), lost };
}

/** Counts one more fault of ours; answers how many there were. */
export async function countFault(redis: Redis, activationId: string): Promise<number> {
  return redis.hincrby(keys.ledger(activationId), "faults", 1);
}
