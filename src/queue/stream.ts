// SPDX-License-Identifier: Apache-2.0
import type { Redis } from "ioredis";
import { setTimeout as delay } from "node:timers/promises";

const COUNT = 500;
/** A blocked read that lost its connection unnoticed comes back by itself. */
const BLOCK_MS = 5_000;
const RETRY_MS = 200;

/**
 * Entries of a stream after `from` ("0" = all that are kept), then new ones as they come; goes on after a lost
 * connection where it was. Needs a connection of its own. Ends when aborted.
 */
export async function* readStream(
  redis: Redis,
  key: string,
  options: { from: string; signal: AbortSignal },
): AsyncGenerator<[id: string, fields: string[]], undefined> {
  const { signal } = options;
  let stop = (): void => undefined;
  // A connection that is told to end while it waits to connect again forgets the commands that wait for it: they never settle.
  const stopped = new Promise<null>((resolve) => {
    stop = () => {
      redis.disconnect();
      resolve(null);
    };
  });
  signal.addEventListener("abort", stop, { once: true });
  let last = options.from;
  try {
    while (!signal.aborted) {
      const entries = await Promise.race([readAfter(redis, key, last), stopped]);
      if (entries === null) {
        if (!signal.aborted) await delay(RETRY_MS, undefined, { signal }).catch(() => undefined);
        continue;
      }
      for (const entry of entries) {
        if (signal.aborted) return undefined;
        yield entry;
        last = entry[0];
      }
    }
  } finally {
    signal.removeEventListener("abort", stop);
  }
  return undefined;
}

/** null when Redis could not be asked. */
async function readAfter(redis: Redis, key: string, last: string): Promise<[string, string[]][] | null> {
  try {
    const reply = await redis.xread("COUNT", COUNT, "BLOCK", BLOCK_MS, "STREAMS", key, last);
    return reply?.[0]?.[1] ?? [];
  } catch {
    return null;
  }
}
