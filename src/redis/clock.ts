// SPDX-License-Identifier: Apache-2.0
import type { Redis } from "ioredis";

/** The clock of Redis, in ms since 1970: hosts' clocks differ. */
export async function redisNow(redis: Redis): Promise<number> {
  return timeIn(await redis.time());
}

/** Of a reply of TIME. Pure. */
export function timeIn([seconds, micros]: readonly (string | number)[]): number {
  return Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000);
}
