// SPDX-License-Identifier: Apache-2.0
import { once } from "node:events";
import type { Settings } from "../config/settings.ts";
import { messageOf } from "../errors.ts";
import { liveWorkers } from "../queue/worker-lease.ts";
import { connectRedis, describeRedis } from "../redis/connect.ts";
import type { CheckLine } from "./checks.ts";

const CONNECT_MS = 10_000;

/**
 * Whether a worker of this host has its lease in the Redis of REDIS_URL: it runs, reaches Redis, and its event loop turns. One that
 * takes nothing for lack of room is alive (warn). Never throws.
 */
export async function checkWorker(settings: Settings, host: string): Promise<CheckLine> {
  const say = (state: CheckLine["state"], text: string): CheckLine => ({ state, what: "worker", text });
  if (settings.redis_url === undefined) return say("fail", "REDIS_URL is not set: only workers of a shared Redis can be asked for");
  const target = { kind: "url", url: settings.redis_url } as const;
  try {
    const redis = connectRedis(target, { role: "fail_fast", onError: () => undefined });
    try {
      await once(redis, "ready", { signal: AbortSignal.timeout(CONNECT_MS) }); // rejects at a connection error, too
      const here = (await liveWorkers({ redis })).filter((worker) => worker.host === host);
      if (here.length === 0) return say("fail", `no worker of ${host} is alive in the Redis at ${describeRedis(target)}; see its log`);
      const held = here.flatMap(({ held_back }) => held_back ?? []);
      const ids = here.map(({ worker_id }) => worker_id).join(", ");
      return held.length === here.length ? say("warn", `${ids} takes no session: ${held[0]}`) : say("ok", ids);
    } finally {
      redis.disconnect();
    }
  } catch (error) {
    return say("fail", `the Redis at ${describeRedis(target)} does not answer: ${messageOf(error)}`);
  }
}
