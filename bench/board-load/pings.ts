// SPDX-License-Identifier: Apache-2.0
import { setTimeout as delay } from "node:timers/promises";
import { connectRedis, type RedisTarget } from "../../src/redis/connect.ts";

const PAUSE_MS = 2;

/** How long PING takes, in ms, asked again and again on a connection of its own, until `meanwhile` is through. */
export async function pingTimes(target: RedisTarget, meanwhile: () => Promise<unknown>): Promise<number[]> {
  const redis = connectRedis(target, { role: "command", onError: () => undefined });
  const through = new AbortController();
  const times: number[] = [];
  await redis.ping();
  const going = (async () => {
    while (!through.signal.aborted) {
      const since = performance.now();
      await redis.ping();
      times.push(performance.now() - since);
      await delay(PAUSE_MS);
    }
  })();
  try {
    await meanwhile();
  } finally {
    through.abort();
    await going;
    redis.disconnect();
  }
  return times;
}
