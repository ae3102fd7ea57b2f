// SPDX-License-Identifier: Apache-2.0
import { createRoute } from "@hono/zod-openapi";
import type { ActivationResult } from "../../contract/result.ts";
import { asRolloutResult } from "../../resources/documents.ts";
import { whyNotRetryable } from "../../queue/retry.ts";
import { findKnown } from "../../resources/find-rollouts.ts";
import { activationParam, away, json, problem } from "../answers.ts";
import { knownInStore } from "../await-end.ts";
import { requireScope } from "../guards.ts";
import type { StateReply } from "../messages.ts";
import { newRoutes, type Api } from "../new-routes.ts";
import type { ApiPorts } from "../ports.ts";
import { ApiProblem } from "../problem.ts";
import { stateNow } from "../state-now.ts";
import { endedStory, openStory, storySchema } from "../story.ts";

/** What happened in one activation, for people. */
export function storyRoutes(ports: ApiPorts): Api {
  const { queues, store } = ports;
  const routes = newRoutes();
  // Of what Redis knows, it knows whose it is.
  const rolloutOf = (committed: ActivationResult, now: StateReply | null): Promise<ActivationResult | null> =>
    now === null || now.rollout !== undefined ? asRolloutResult(store, committed) : Promise.resolve(null);
  routes.openapi(
    createRoute({
      method: "get",
      path: "/activations/{id}/story",
      summary: "What happened in it, in order: attempts, tool servers, tool calls, its end; as far as it is known now",
      middleware: [requireScope("read")] as const,
      request: { params: activationParam },
      responses: { 200: json(storySchema, "its story"), 404: problem("not known here"), ...away },
    }),
    async (context) => {
      const { id } = context.req.valid("param");
      const [found] = await findKnown(queues, [id]);
      const now = found!.state === "unknown" ? null : await stateNow(queues, found!);
      // What ended long ago is in the store alone.
      const committed = now === null || now.state === "ended" ? await knownInStore(ports, id) : null;
      const why = now === null ? "job_removed" : now.state === "ended" ? await whyNotRetryable(queues, found!) : null;
      if (committed !== null && (now === null || now.generation === committed.generation))
        return context.json(endedStory((await rolloutOf(committed, now)) ?? committed, now, why), 200);
      if (now === null) throw new ApiProblem(404, "activation_unknown", `no activation ${id} is known here`);
      return context.json(openStory(now, found!.task_id, await store.readAttempts(id), why), 200);
    },
  );
  return routes;
}
