// SPDX-License-Identifier: Apache-2.0
import { createRoute, z } from "@hono/zod-openapi";
import { liveWorkers } from "../../queue/worker-lease.ts";
import { probeWrites } from "../../redis/policy.ts";
import { redisTrouble } from "../../redis/trouble.ts";
import { newRoutes, type Api } from "../new-routes.ts";
import type { ApiPorts } from "../ports.ts";

const JSON_TYPE = "application/json";
/** Those other than "ok" and "evicts" are what a write was answered with. */
const STATES = ["ok", "away", "evicts", "full", "read_only", "cannot_save", "refuses"] as const;
const ready = z.object({ ready: z.boolean(), redis: z.enum(STATES), workers: z.int(), version: z.string() }).openapi("Ready");

/** For whoever starts and watches this process; no key is asked for, and nothing of any run is told. */
export function healthRoutes({ queues, version }: ApiPorts): Api {
  const routes = newRoutes();
  routes.openapi(
    createRoute({
      method: "get",
      path: "/healthz",
      security: [],
      responses: { 200: { description: "the process lives", content: { [JSON_TYPE]: { schema: z.object({ ok: z.literal(true) }) } } } },
    }),
    (context) => context.json({ ok: true as const }, 200),
  );
  routes.openapi(
    createRoute({
      method: "get",
      path: "/readyz",
      security: [],
      responses: {
        200: {
          description: "Redis answers, takes writes, keeps everything, and workers may be seen",
          content: { [JSON_TYPE]: { schema: ready } },
        },
        503: { description: "not ready", content: { [JSON_TYPE]: { schema: ready } } },
      },
    }),
    async (context) => {
      const redis = await stateOfRedis(queues);
      const workers = redis === "away" ? 0 : (await liveWorkers(queues).catch(() => [])).length;
      return context.json({ ready: redis === "ok", redis, workers, version }, redis === "ok" ? 200 : 503);
    },
  );
  return routes;
}

async function stateOfRedis({ redis }: ApiPorts["queues"]): Promise<(typeof STATES)[number]> {
  try {
    const memory = await redis.info("memory"); // fail_fast: at once
    if (!/maxmemory_policy:noeviction/.test(memory)) return "evicts";
    await probeWrites(redis);
    return "ok";
  } catch (error) {
    return redisTrouble(error)?.kind ?? "away";
  }
}
