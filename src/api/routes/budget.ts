// SPDX-License-Identifier: Apache-2.0
import { createRoute, z } from "@hono/zod-openapi";
import { readBudget, setBudget } from "../../queue/budget.ts";
import { away, json, problem, runParam } from "../answers.ts";
import { budgetReply } from "../budget-reply.ts";
import { requireScope } from "../guards.ts";
import { newRoutes, type Api } from "../new-routes.ts";
import type { ApiPorts } from "../ports.ts";

const most = z.int().min(1).max(Number.MAX_SAFE_INTEGER);
const YEARS_MS = 10 * 366 * 86_400_000;
const budgetBody = z
  .strictObject({
    /** Absent: without this limit. */
    max_model_calls: most.optional(),
    max_tokens: most.optional(),
    /** From now on, so long, something may start. */
    starts_for_ms: z.int().min(0).max(YEARS_MS).optional(),
    /** Used already, if Redis does not know of it: it counts at least so much. */
    used: z.strictObject({ model_calls: z.int().min(0), tokens: z.int().min(0) }).optional(),
  })
  .openapi("SetBudget");
export type BudgetBody = z.infer<typeof budgetBody>;

/** What a run may use before it starts nothing more. May be set before anything of the run is queued. */
export function budgetRoutes({ queues }: ApiPorts): Api {
  const routes = newRoutes();
  routes.openapi(
    createRoute({
      method: "put",
      path: "/runs/{run_id}/budget",
      summary: "What it may use: past it nothing starts, what runs ends, and what waits goes on under a larger one",
      middleware: requireScope("enqueue"),
      request: { params: runParam, body: { required: true, content: { "application/json": { schema: budgetBody } } } },
      responses: { 200: json(budgetReply, "as it is now"), 422: problem("no such budget"), ...away },
    }),
    async (context) => {
      const { run_id } = context.req.valid("param");
      const { max_model_calls = null, max_tokens = null, starts_for_ms = null, used } = context.req.valid("json");
      await setBudget(queues, run_id, { max_model_calls, max_tokens, starts_for_ms }, used ?? { model_calls: 0, tokens: 0 });
      return context.json(await readBudget(queues, run_id), 200);
    },
  );
  return routes;
}
