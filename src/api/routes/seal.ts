// SPDX-License-Identifier: Apache-2.0
import { createRoute, z } from "@hono/zod-openapi";
import { sealActivation } from "../../activation/seal.ts";
import { withDerivedIds } from "../../contract/derive.ts";
import { newRunId } from "../../contract/identity.ts";
import { admit } from "../../contract/refusals.ts";
import { activationFlow } from "../../queue/jobs.ts";
import { json, problem } from "../answers.ts";
import { newRoutes, type Api } from "../new-routes.ts";
import { requireScope } from "../guards.ts";
import type { ApiPorts } from "../ports.ts";
import { refusedProblem } from "../problem.ts";

const body = z.record(z.string(), z.unknown()).openapi({ type: "object", allOf: [{ $ref: "#/components/schemas/Activation" }] } as object);
const sealed = z
  .object({
    activation_id: z.string(),
    run_id: z.string(),
    /** For BullMQ's FlowProducer.add, as it is: the activation's job, and the parent that records its end. */
    flow: z.unknown(),
  })
  .openapi("Sealed");

export type Sealed = z.infer<typeof sealed>;

/** For producers that add to the queue themselves, in whatever language: Redis must not hold their secrets in clear. */
export function sealRoutes({ policy, keys, queues }: ApiPorts): Api {
  const routes = newRoutes();
  routes.openapi(
    createRoute({
      method: "post",
      path: "/seal",
      summary: "Check an activation and seal its secrets, without queueing it",
      middleware: requireScope("enqueue"),
      request: { body: { required: true, content: { "application/json": { schema: body } } } },
      responses: { 200: json(sealed, "what is to be added to the queue"), 422: problem("it cannot be run") },
    }),
    (context) => {
      const admission = admit(withDerivedIds(context.req.valid("json"), newRunId()), policy);
      if (!admission.accepted) throw refusedProblem(admission.refusals);
      const { activation } = admission;
      const options = { generation: 0, enqueuedAt: new Date().toISOString(), settings: queues.settings };
      const flow = activationFlow(activation, sealActivation(activation, keys), options);
      return context.json({ activation_id: activation.activation_id, run_id: activation.run_id, flow }, 200);
    },
  );
  return routes;
}
