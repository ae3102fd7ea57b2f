// SPDX-License-Identifier: Apache-2.0
import { createRoute, z } from "@hono/zod-openapi";
import { cancelActivations } from "../../queue/cancel.ts";
import { findKnown } from "../../resources/find-rollouts.ts";
import { away, json, problem } from "../answers.ts";
import { newRoutes, type Api } from "../new-routes.ts";
import { requireScope } from "../guards.ts";
import { markOf } from "../mark.ts";
import { cancelAnswer, stateReply } from "../messages.ts";
import type { ApiPorts } from "../ports.ts";
import { statesNow } from "../state-now.ts";

const BATCH = 100;
const ids = z.array(z.string().min(1).max(200)).min(1).max(1_000);
const cancelBody = z.strictObject({ activation_ids: ids, reason: z.string().max(500).optional() }).openapi("CancelMany");
const stateBody = z.strictObject({ activation_ids: ids }).openapi("StateOfMany");

/** Up to 1,000 activations in one request; what is not known here has the state `unknown`. */
export function manyRoutes({ queues }: ApiPorts): Api {
  const routes = newRoutes();
  routes.openapi(
    createRoute({
      method: "post",
      path: "/activations/state",
      summary: "Where many are",
      middleware: [requireScope("read")] as const,
      request: { body: { required: true, content: { "application/json": { schema: stateBody } } } },
      responses: {
        200: json(z.object({ activations: z.array(stateReply) }), "one for each id, in order"),
        422: problem("not a list of ids"),
        ...away,
      },
    }),
    async (context) => {
      const { activation_ids } = context.req.valid("json");
      const activations: z.infer<typeof stateReply>[] = [];
      for (let from = 0; from < activation_ids.length; from += BATCH)
        activations.push(...(await statesNow(queues, await findKnown(queues, activation_ids.slice(from, from + BATCH)))));
      return context.json({ activations }, 200);
    },
  );
  routes.openapi(
    createRoute({
      method: "post",
      path: "/activations/cancel",
      summary: "Cancel many",
      middleware: [requireScope("enqueue")] as const,
      request: { body: { required: true, content: { "application/json": { schema: cancelBody } } } },
      responses: {
        200: json(z.object({ activations: z.array(cancelAnswer) }), "one for each id, in order"),
        422: problem("not a list of ids"),
        ...away,
      },
    }),
    async (context) => {
      const { activation_ids, reason } = context.req.valid("json");
      return context.json({ activations: await cancelActivations(queues, activation_ids, markOf(context.var.caller, reason)) }, 200);
    },
  );
  return routes;
}
