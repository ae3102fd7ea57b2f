// SPDX-License-Identifier: Apache-2.0
import { createRoute, z } from "@hono/zod-openapi";
import { rolloutIdSchema } from "../../contract/identity.ts";
import { refusedResult, refusedRowSchema } from "../../contract/refused.ts";
import { recordRefused } from "../../queue/refused.ts";
import { away, json, problem } from "../answers.ts";
import { requireScope } from "../guards.ts";
import { newRoutes, type Api } from "../new-routes.ts";
import type { ApiPorts } from "../ports.ts";

const refusedBody = z.strictObject({ refused: z.array(refusedRowSchema).min(1).max(1_000) }).openapi("RecordRefused");
const recorded = z.object({ recorded: z.int().min(0) }).openapi("RefusedRecorded");
export type RefusedRecorded = z.infer<typeof recorded>;

/** Rows of a run that never were activations: their producer tells of them, so that the run is counted whole. */
export function refusedRoutes({ queues, store }: ApiPorts): Api {
  const routes = newRoutes();
  routes.openapi(
    createRoute({
      method: "post",
      path: "/runs/{run_id}/refused",
      summary: "Record rows that could not be queued as refused; an id that is in use stays as it is",
      middleware: requireScope("enqueue"),
      request: {
        params: z.object({ run_id: rolloutIdSchema.max(200).openapi({ example: "run-1" }) }),
        body: { required: true, content: { "application/json": { schema: refusedBody } } },
      },
      responses: { 200: json(recorded, "how many of them are recorded as refused now"), 422: problem("no such rows"), ...away },
    }),
    async (context) => {
      const { run_id } = context.req.valid("param");
      let count = 0;
      for (const row of context.req.valid("json").refused)
        if (await recordRefused(queues, store, refusedResult(run_id, row, new Date()))) count += 1;
      return context.json({ recorded: count }, 200);
    },
  );
  return routes;
}
