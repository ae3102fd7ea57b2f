// SPDX-License-Identifier: Apache-2.0
import { createRoute, z } from "@hono/zod-openapi";
import { BREAKER_MODES } from "../../queue/breaker-mode.ts";
import { breakerState, setBreaker } from "../../queue/breaker.ts";
import { away, json, problem, runParam } from "../answers.ts";
import { requireScope } from "../guards.ts";
import { newRoutes, type Api } from "../new-routes.ts";
import type { ApiPorts } from "../ports.ts";

const breakerReply = z
  .object({
    /** Of the last opening, while it lasts; retry_in_ms null: it does not try again by itself. */
    open: z.object({ retry_in_ms: z.number().nullable() }).nullable(),
    /** The newest last; times are ISO 8601. */
    openings: z.array(
      z.object({
        cause_code: z.string(),
        cause_class: z.enum(["infrastructure", "model_provider"]),
        failure_kind: z.string().nullable(),
        answered: z.boolean(),
        reason: z.string(),
        opened_at: z.string(),
        activations: z.array(z.string()),
        untouched: z.int(),
        trials: z.int(),
        closed_at: z.string().nullable(),
      }),
    ),
  })
  .openapi("Breaker");
export type BreakerReply = z.infer<typeof breakerReply>;
const breakerBody = z.strictObject({ mode: z.enum(BREAKER_MODES) }).openapi("SetBreaker");

/** A run that holds itself back when different activations fail alike. May be set before anything of the run is queued. */
export function breakerRoutes({ queues }: ApiPorts): Api {
  const routes = newRoutes();
  routes.openapi(
    createRoute({
      method: "get",
      path: "/runs/{run_id}/breaker",
      summary: "When and why it held itself back",
      middleware: requireScope("read"),
      request: { params: runParam },
      responses: { 200: json(breakerReply, "none where the run is not known"), ...away },
    }),
    async (context) => context.json(await breakerState(queues, context.req.valid("param").run_id), 200),
  );
  routes.openapi(
    createRoute({
      method: "put",
      path: "/runs/{run_id}/breaker",
      summary: "What it does from now on when different activations fail alike; lifts what held it back before",
      middleware: requireScope("enqueue"),
      request: { params: runParam, body: { required: true, content: { "application/json": { schema: breakerBody } } } },
      responses: { 200: json(breakerReply, "as it is now"), 422: problem("no such mode"), ...away },
    }),
    async (context) => {
      const { run_id } = context.req.valid("param");
      await setBreaker(queues, run_id, context.req.valid("json").mode);
      return context.json(await breakerState(queues, run_id), 200);
    },
  );
  return routes;
}
