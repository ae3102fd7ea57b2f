// SPDX-License-Identifier: Apache-2.0
import type { Redis } from "ioredis";

/** Every value in Redis, whatever its type, and its name. */
export async function everythingIn(redis: Redis): Promise<string> {
  const readers: Record<string, (key: string) => Promise<unknown>> = {
    string: (key) => redis.get(key),
    hash: (key) => redis.hgetall(key),
    list: (key) => redis.lrange(key, 0, -1),
    set: (key) => redis.smembers(key),
    zset: (key) => redis.zrange(key, "0", "-1", "WITHSCORES"),
    stream: (key) => redis.xrange(key, "-", "+"),
    none: async () => null, // gone since the scan: a marker of BullMQ's, an expired key
  };
  const found: unknown[] = [];
  for await (const keys of redis.scanStream()) {
    for (const key of keys as string[]) found.push(key, await readers[await redis.type(key)]!(key));
  }
  return found.map((value) => (typeof value === "string" ? value : JSON.stringify(value))).join("\n");
}
