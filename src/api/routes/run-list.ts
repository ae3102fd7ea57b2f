// SPDX-License-Identifier: Apache-2.0
import { createRoute, z } from "@hono/zod-openapi";
import { compress } from "hono/compress";
import { listRuns } from "../../queue/run-list.ts";
import { isKnownRun } from "../../queue/run-status.ts";
import { away, json, problem, runParam } from "../answers.ts";
import { bodyOf } from "../event-stream.ts";
import { requireScope } from "../guards.ts";
import { newRoutes, type Api } from "../new-routes.ts";
import type { ApiPorts } from "../ports.ts";
import { ApiProblem } from "../problem.ts";
import { ROW_STATES, rowLines, runRow } from "../row-lines.ts";

const count = z.int().min(0);
const runList = z
  .object({
    runs: z.array(
      z.object({
        run_id: z.string(),
        /** When something of it was queued last. */
        queued_at: z.string(),
        running: count,
        /** Not ended; includes those that run. */
        open: count,
        ended: count,
        /** Of those that ended: with a failure, whatever their status. */
        with_failure: count,
        paused: z.boolean(),
        /** Its breaker is open. */
        held_back: z.boolean(),
      }),
    ),
    /** Give it as `after`; null: there are no more. */
    next: z.string().nullable(),
  })
  .openapi("Runs");
export type RunListReply = z.infer<typeof runList>;

/** For tables: all runs, and all activations of one. */
export function runListRoutes({ queues }: ApiPorts): Api {
  const routes = newRoutes();
  const read = requireScope("read");

  routes.openapi(
    createRoute({
      method: "get",
      path: "/runs",
      summary: "Runs, those that something was queued of last first",
      middleware: read,
      request: {
        query: z.object({
          after: runParam.shape.run_id.optional().openapi({ description: "go on after this run" }),
          limit: z.coerce.number().int().min(1).max(200).default(50),
        }),
      },
      responses: { 200: json(runList, "at most `limit`"), ...away },
    }),
    async (context) => {
      const { after = null, limit } = context.req.valid("query");
      return context.json(await listRuns(queues, { after, count: limit, prefix: context.var.caller.owner ?? "" }), 200);
    },
  );

  routes.openapi(
    createRoute({
      method: "get",
      path: "/runs/{run_id}/rows",
      summary: "A compact row for each activation, as lines of JSON",
      middleware: [read, compress({ contentTypeFilter: /ndjson/ })] as const,
      request: {
        params: runParam,
        query: z.object({
          state: z
            .enum(ROW_STATES)
            .default("ended")
            .openapi({ description: "ended, in the order of the ends; or those that run, or wait, now" }),
          cursor: z
            .string()
            .regex(/^\d{1,15}-\d{1,15}$/, "the cursor of a row")
            .optional()
            .openapi({ description: "of those that ended: go on after this row" }),
          limit: z.coerce.number().int().min(1).max(1_000_000).default(10_000),
        }),
      },
      responses: {
        200: { description: "one line for each", content: { "application/x-ndjson": { schema: runRow } } },
        404: problem("nothing of this run is known here"),
        ...away,
      },
    }),
    async (context) => {
      const { state, cursor = "0", limit } = context.req.valid("query");
      const { run_id } = context.req.valid("param");
      if (!(await isKnownRun(queues, run_id))) throw new ApiProblem(404, "run_unknown", `nothing of the run ${run_id} is known here`);
      const body = bodyOf(rowLines(queues, run_id, { state, cursor, limit, signal: context.req.raw.signal }), () => undefined);
      return context.newResponse(body, 200, { "content-type": "application/x-ndjson", "cache-control": "no-store" }) as never;
    },
  );
  return routes;
}
