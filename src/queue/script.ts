// SPDX-License-Identifier: Apache-2.0
import { createHash } from "node:crypto";
import type { Redis } from "ioredis";

/** A Lua script: runs in Redis as one step. */
export interface Script {
  readonly lua: string;
  readonly sha: string;
}

export function script(lua: string): Script {
  return { lua, sha: createHash("sha1").update(lua).digest("hex") };
}

/** Runs a script; its text is sent only when Redis does not hold it (first use, or after a restart). */
export async function runScript(redis: Redis, { lua, sha }: Script, keys: string[], args: (string | number)[]): Promise<unknown> {
  try {
    return await redis.evalsha(sha, keys.length, ...keys, ...args);
  } catch (error) {
    if (!(error instanceof Error) || !error.message.startsWith("NOSCRIPT")) throw error;
    return redis.eval(lua, keys.length, ...keys, ...args);
  }
}

/** Lua: `now` in ms by the clock of Redis, because hosts' clocks differ. */
export const LUA_NOW = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
`;
