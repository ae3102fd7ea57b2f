// SPDX-License-Identifier: Apache-2.0
import type { Redis } from "ioredis";
import { keys } from "./names.ts";
import { runScript, script } from "./script.ts";

// A worker that stood still after its Codex had ended commits when it goes on: its work is finished. By then another may
// have begun the next attempt, which nobody needs any more.
const TELL = script(`
local open = redis.call('HGET', KEYS[1], 'open')
if not open or open == ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'committed', ARGV[2])
redis.call('PUBLISH', KEYS[2], ARGV[3])
return 1
`);

/** Tells whoever runs another attempt than this one that the end is committed. */
export async function tellCommitted(
  redis: Redis,
  { activationId, jobId, generation, attempt }: { activationId: string; jobId: string; generation: number; attempt: number },
): Promise<void> {
  await runScript(redis, TELL, [keys.ledger(activationId), keys.stops], [attempt, generation, jobId]);
}

/** Whether somebody else committed the end of this generation while an attempt of it ran. */
export async function isCommitted(redis: Redis, activationId: string, generation: number): Promise<boolean> {
  return (await redis.hget(keys.ledger(activationId), "committed")) === String(generation);
}
