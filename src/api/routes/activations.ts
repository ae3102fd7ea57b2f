// SPDX-License-Identifier: Apache-2.0
import { createHash } from "node:crypto";
import { createRoute, z } from "@hono/zod-openapi";
import { cancelActivation } from "../../queue/cancel.ts";
import { retryActivations } from "../../queue/retry.ts";
import { findKnown } from "../../resources/find-rollouts.ts";
import { activationParam, away, json, problem } from "../answers.ts";
import { newRoutes, type Api } from "../new-routes.ts";
import { enqueueRequest } from "../enqueue-request.ts";
import { requireScope } from "../guards.ts";
import { markOf } from "../mark.ts";
import { cancelAnswer, enqueueReply, retryAnswer, stateReply } from "../messages.ts";
import type { ApiPorts } from "../ports.ts";
import { ApiProblem } from "../problem.ts";
import { stateNow } from "../state-now.ts";

/** Adding activations, looking at one, cancelling one. */
export function activationRoutes(ports: ApiPorts): Api {
  const { queues, store, keys } = ports;
  const routes = newRoutes();

  routes.openapi(
    createRoute({
      method: "post",
      path: "/activations",
      summary: "Queue one activation, or up to 1,000",
      middleware: [requireScope("enqueue")] as const,
      request: {
        query: z.object({
          partial: z.stringbool().optional().openapi({ type: "boolean", description: "queue what can be, instead of all or nothing" }),
          again: z.stringbool().optional().openapi({ type: "boolean", description: "run those that have ended once more" }),
          run_id: z
            .string()
            .min(1)
            .max(200)
            .optional()
            .openapi({ description: "for activations that name none; without it, those whose id is there belong to its run" }),
        }),
        headers: z.object({
          "idempotency-key": z
            .string()
            .min(1)
            .max(200)
            .optional()
            .openapi({ description: "makes the run id of activations that name none: the same request sent again joins" }),
        }),
        body: {
          required: true,
          content: {
            "application/json": {
              schema: z.unknown().openapi({
                oneOf: [
                  { $ref: "#/components/schemas/Activation" },
                  { type: "array", minItems: 1, maxItems: 1_000, items: { $ref: "#/components/schemas/Activation" } },
                ],
              }),
            },
          },
        },
      },
      responses: {
        202: json(enqueueReply, "in Redis, each with what became of it"),
        409: problem("an id is there with other content; the fields that differ are named; nothing was queued"),
        413: problem("too large"),
        422: problem("refused, with every reason; nothing was queued"),
        ...away,
      },
    }),
    async (context) => {
      const key = context.req.valid("header")["idempotency-key"];
      const query = context.req.valid("query");
      const { partial = false, again = false, run_id: runId = null } = query;
      const { name, owner } = context.var.caller;
      const newRun = key === undefined ? null : runIdOf(name, key);
      return context.json(await enqueueRequest(ports, context.req.valid("json"), { partial, again, runId, newRun, owner }), 202);
    },
  );

  routes.openapi(
    createRoute({
      method: "get",
      path: "/activations/{id}",
      summary: "Where an activation is, and what its session does",
      middleware: [requireScope("read")] as const,
      request: { params: activationParam },
      responses: {
        200: json(stateReply, "its state"),
        404: problem("not known here"),
        ...away,
      },
    }),
    async (context) => {
      const [found] = await findKnown(queues, [context.req.valid("param").id]);
      if (found!.state === "unknown") throw unknown(context.req.valid("param").id);
      return context.json(await stateNow(queues, found!), 200);
    },
  );

  routes.openapi(
    createRoute({
      method: "delete",
      path: "/activations/{id}",
      summary: "Cancel it",
      middleware: [requireScope("enqueue")] as const,
      request: { params: activationParam, query: z.object({ reason: z.string().max(500).optional() }) },
      responses: {
        200: json(cancelAnswer, "what that did"),
        404: problem("not known here"),
        ...away,
      },
    }),
    async (context) => {
      const mark = markOf(context.var.caller, context.req.valid("query").reason);
      const answer = await cancelActivation(queues, context.req.valid("param").id, mark);
      if (answer.state === "unknown") throw unknown(answer.activation_id);
      return context.json(answer, 200);
    },
  );

  routes.openapi(
    createRoute({
      method: "post",
      path: "/activations/{id}/retry",
      summary: "Run it once more, when it has ended",
      middleware: [requireScope("enqueue")] as const,
      request: { params: activationParam },
      responses: { 200: json(retryAnswer, "what that did"), 404: problem("not known here"), ...away },
    }),
    async (context) => {
      const [answer] = await retryActivations({ queues, store, keys }, [context.req.valid("param").id]);
      if (answer!.state === "unknown") throw unknown(answer!.activation_id);
      return context.json(answer!, 200);
    },
  );
  return routes;
}

function unknown(id: string): ApiProblem {
  return new ApiProblem(404, "activation_unknown", `no activation ${id} is known here: never queued, or removed since`);
}

/** Of one caller's key, so that two callers do not meet by chance. */
function runIdOf(caller: string, key: string): string {
  return `key-${createHash("sha256").update(`${caller}\0${key}`).digest("hex").slice(0, 24)}`;
}
