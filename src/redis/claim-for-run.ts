// SPDX-License-Identifier: Apache-2.0
import { connectRedis, type RedisTarget } from "./connect.ts";

const KEY = "{rollcall}:embedded_run";

/**
 * Makes an embedded Redis the given run's own. Its state directory follows from the output directory's path, so where that
 * was deleted and made again, activations of the run before would still wait here, and be run and paid for: they are
 * removed. Idempotent; before anything else of the run is in there.
 */
export async function claimForRun(target: RedisTarget, runId: string): Promise<void> {
  const redis = connectRedis(target, { role: "command", onError: () => undefined });
  try {
    const owner = await redis.get(KEY);
    if (owner === runId) return;
    if (owner !== null) await redis.flushdb();
    await redis.set(KEY, runId);
  } finally {
    redis.disconnect();
  }
}
