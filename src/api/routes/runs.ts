// SPDX-License-Identifier: Apache-2.0
import { createRoute, z } from "@hono/zod-openapi";
import { statusSchema, type ActivationResult, type Status } from "../../contract/result.ts";
import { cancelRun } from "../../queue/cancel.ts";
import { ACTIVATION_STATES } from "../../queue/find-activation.ts";
import { pauseRun, resumeRun } from "../../queue/pause.ts";
import { retryRun } from "../../queue/retry.ts";
import { isKnownRun } from "../../queue/run-status.ts";
import { away, json, problem, runParam } from "../answers.ts";
import { newRoutes, type Api } from "../new-routes.ts";
import { bodyOf } from "../event-stream.ts";
import { requireScope } from "../guards.ts";
import { markOf } from "../mark.ts";
import { resultReply } from "../messages.ts";
import type { ApiPorts } from "../ports.ts";
import { ApiProblem } from "../problem.ts";
import { resultLines } from "../result-lines.ts";
import { runReply, runView } from "../run-view.ts";
import type { WaitingRoom } from "../waiting-room.ts";

const reason = z.object({ reason: z.string().max(500).optional() });
const paused = z.object({ run_id: z.string(), paused: z.boolean(), changed: z.boolean() }).openapi("RunPause");
const cancelled = z.object({ run_id: z.string(), found: z.partialRecord(z.enum(ACTIVATION_STATES), z.int()) }).openapi("RunCancelled");
const retried = z
  .object({
    run_id: z.string(),
    queued_again: z.int(),
    /** Ended, and not to be had again from here: their producer must send them again. */
    impossible: z.object({ secrets_deleted: z.int(), job_removed: z.int() }),
  })
  .openapi("RunRetried");
const resultLine = z
  .object({ cursor: z.string(), activation_id: z.string(), generation: z.int(), status: statusSchema, result: resultReply })
  .openapi("ResultLine");
export type RunPause = z.infer<typeof paused>;
export type RunCancelled = z.infer<typeof cancelled>;
export type RunRetried = z.infer<typeof retried>;
export type ResultLine = z.infer<typeof resultLine> & { result: ActivationResult | null };

/** A whole run: how it stands, its results, and what stops, holds and repeats it. */
export function runRoutes(ports: ApiPorts, room: WaitingRoom): Api {
  const { queues, store, keys } = ports;
  const routes = newRoutes();
  const read = requireScope("read");
  const change = requireScope("enqueue");
  const notKnown = { 404: problem("nothing of this run is known here"), ...away };

  async function known(runId: string): Promise<string> {
    if (await isKnownRun(queues, runId)) return runId;
    throw new ApiProblem(404, "run_unknown", `nothing of the run ${runId} is known here`);
  }

  routes.openapi(
    createRoute({
      method: "get",
      path: "/runs/{run_id}",
      summary: "Counts, rate, and failures by their cause",
      middleware: read,
      request: { params: runParam },
      responses: { 200: json(runReply, "how it stands"), ...notKnown },
    }),
    async (context) => context.json(await runView(ports, await known(context.req.valid("param").run_id)), 200),
  );

  routes.openapi(
    createRoute({
      method: "get",
      path: "/runs/{run_id}/results",
      summary: "Results in the order of their ends, as lines of JSON",
      middleware: read,
      request: {
        params: runParam,
        query: z.object({
          cursor: z
            .string()
            .regex(/^\d{1,15}-\d{1,15}$/, "the cursor of a line")
            .optional()
            .openapi({ description: "go on after this line" }),
          limit: z.coerce.number().int().min(1).max(1_000_000).default(1_000),
          bare: z.stringbool().optional().openapi({ type: "boolean", description: "without the results: who ended, and how" }),
          follow: z.stringbool().optional().openapi({ type: "boolean", description: "wait for more until all have ended" }),
        }),
      },
      responses: { 200: { description: "one line for each", content: { "application/x-ndjson": { schema: resultLine } } }, ...notKnown },
    }),
    async (context) => {
      const { cursor = "0", limit, bare = false, follow = false } = context.req.valid("query");
      const runId = await known(context.req.valid("param").run_id);
      const { signal, leave } = room.enter(context.req.raw.signal);
      const body = bodyOf(resultLines(ports, runId, { cursor, limit, follow, bare, signal }), leave);
      return context.newResponse(body, 200, { "content-type": "application/x-ndjson", "cache-control": "no-store" }) as never;
    },
  );

  for (const action of ["pause", "resume"] as const) {
    routes.openapi(
      createRoute({
        method: "post",
        path: `/runs/{run_id}/${action}`,
        summary: action === "pause" ? "Start nothing more of it; what runs goes on" : "Let it go on",
        middleware: change,
        request: { params: runParam, query: reason },
        responses: { 200: json(paused, "done"), ...notKnown },
      }),
      async (context) => {
        const run_id = await known(context.req.valid("param").run_id);
        const mark = markOf(context.var.caller, context.req.valid("query").reason);
        const changed = action === "pause" ? await pauseRun(queues, run_id, mark) : await resumeRun(queues, run_id);
        return context.json({ run_id, paused: action === "pause", changed }, 200);
      },
    );
  }

  routes.openapi(
    createRoute({
      method: "post",
      path: "/runs/{run_id}/retry",
      summary: "Queue again what did not complete",
      middleware: change,
      request: {
        params: runParam,
        query: z.object({
          status: statusSchema.optional().openapi({ description: "only what ended so; else failed, refused and cancelled" }),
        }),
      },
      responses: { 200: json(retried, "what was queued again"), ...notKnown },
    }),
    async (context) => {
      const run_id = await known(context.req.valid("param").run_id);
      const { status: only } = context.req.valid("query");
      const wanted = (status: Status): boolean =>
        only === undefined ? status !== "completed" && status !== "incomplete" : status === only;
      const reply = { run_id, queued_again: 0, impossible: { secrets_deleted: 0, job_removed: 0 } };
      for await (const some of retryRun({ queues, store, keys }, run_id, wanted)) {
        for (const { outcome, why } of some) {
          if (outcome === "done") reply.queued_again += 1;
          if (why !== null) reply.impossible[why] += 1;
        }
      }
      return context.json(reply, 200);
    },
  );

  routes.openapi(
    createRoute({
      method: "delete",
      path: "/runs/{run_id}",
      summary: "Cancel all of it that has not ended",
      middleware: change,
      request: { params: runParam, query: reason },
      responses: { 200: json(cancelled, "how many were found in which state"), ...notKnown },
    }),
    async (context) => {
      const run_id = await known(context.req.valid("param").run_id);
      const mark = markOf(context.var.caller, context.req.valid("query").reason);
      return context.json({ run_id, found: await cancelRun(queues, run_id, mark) }, 200);
    },
  );
  return routes;
}
