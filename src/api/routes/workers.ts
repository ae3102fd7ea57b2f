// SPDX-License-Identifier: Apache-2.0
import { createRoute, z } from "@hono/zod-openapi";
import { refusingModels } from "../../queue/model-limiter.ts";
import { workersAbsentMs } from "../../queue/worker-lease.ts";
import { workerLoads } from "../../queue/worker-loads.ts";
import { away, json, runParam } from "../answers.ts";
import { requireScope } from "../guards.ts";
import { newRoutes, type Api } from "../new-routes.ts";
import type { ApiPorts } from "../ports.ts";

const workersReply = z
  .object({
    workers: z.array(
      z.object({
        worker_id: z.string(),
        host: z.string(),
        pid: z.int(),
        providers: z.array(z.string()),
        codex_versions: z.array(z.string()),
        classes: z.array(z.string()),
        /** Why it takes nothing for now. */
        held_back: z.string().nullable(),
        /** Sessions that it takes at once. */
        concurrency: z.int().optional(),
        /** Its lease runs out then, unless renewed. */
        lease_ends_in_ms: z.number(),
        /** Activations that it has: of the run that was named. */
        running: z.int().nullable(),
      }),
    ),
    /** For how long none has lived. */
    absent_ms: z.number().nullable(),
    /** Model servers that refuse sessions, and have served none since. */
    refusing_models: z.array(z.object({ server: z.string(), since: z.string(), for_ms: z.number(), waiting: z.int() })),
  })
  .openapi("Workers");
export type WorkersReply = z.infer<typeof workersReply>;

/** Who does the work of this queue. */
export function workerRoutes({ queues }: ApiPorts): Api {
  const routes = newRoutes();
  routes.openapi(
    createRoute({
      method: "get",
      path: "/workers",
      summary: "Which workers live, and what keeps them from working",
      middleware: requireScope("read"),
      request: { query: z.object({ run_id: runParam.shape.run_id.optional() }) },
      responses: { 200: json(workersReply, "all of this queue"), ...away },
    }),
    async (context) => {
      const { run_id } = context.req.valid("query");
      const [loads, absent_ms, refusing_models] = await Promise.all([
        workerLoads(queues, run_id ?? ""),
        workersAbsentMs(queues),
        refusingModels(queues),
      ]);
      const workers = loads.map(({ key_ids: _keys, schema_minor: _minor, store_id: _store, running, ...load }) => {
        return { ...load, running: run_id === undefined ? null : running };
      });
      return context.json({ workers, absent_ms, refusing_models }, 200);
    },
  );
  return routes;
}
