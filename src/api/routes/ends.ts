// SPDX-License-Identifier: Apache-2.0
import { createRoute, z } from "@hono/zod-openapi";
import type { FoundActivation } from "../../queue/find-activation.ts";
import { isEnd, readProgress } from "../../queue/progress.ts";
import type { Queues } from "../../queue/queues.ts";
import { isAfter } from "../../queue/stream-watch.ts";
import { findKnown } from "../../resources/find-rollouts.ts";
import { activationParam, away, json, problem, waitSeconds } from "../answers.ts";
import { newRoutes, type Api } from "../new-routes.ts";
import { awaitEnd, knownInStore, storedResult } from "../await-end.ts";
import { bodyOf, eventStream } from "../event-stream.ts";
import { requireScope } from "../guards.ts";
import { eventReply, resultReply, stateReply } from "../messages.ts";
import type { ApiPorts } from "../ports.ts";
import { ApiProblem } from "../problem.ts";
import { stateNow } from "../state-now.ts";
import type { WaitingRoom } from "../waiting-room.ts";

const MOST_SECONDS = 3_600;
const HEARTBEAT_MS = 15_000;

/** Waiting for one activation: its result, and what happens until then. */
export function endRoutes(ports: ApiPorts, room: WaitingRoom): Api {
  const { queues } = ports;
  const routes = newRoutes();

  routes.openapi(
    createRoute({
      method: "get",
      path: "/activations/{id}/result",
      summary: "Its result, waited for if need be",
      middleware: [requireScope("read")] as const,
      request: { params: activationParam, query: z.object({ wait: waitSeconds(MOST_SECONDS) }) },
      responses: {
        200: json(resultReply, "it has ended: the whole result; of a rollout with a resources server with its reward"),
        202: json(stateReply, "it has not ended yet, or its rollout is not over: where it is"),
        404: problem("not known here"),
        ...away,
      },
    }),
    async (context) => {
      const { id } = context.req.valid("param");
      const waitMs = context.req.valid("query").wait * 1_000;
      const request = context.req.raw.signal;
      const place = waitMs > 0 ? room.enter(request) : null;
      try {
        const found = await awaitEnd(ports, id, { waitMs, signal: place?.signal ?? request });
        // What ended long ago is in the store alone.
        const generation = found.state === "unknown" ? ((await knownInStore(ports, id))?.generation ?? null) : found.generation;
        const rollout = found.state === "unknown" ? "over" : found.rollout === null ? "none" : found.state === "ended" ? "over" : "open";
        const text = generation === null ? null : await storedResult(ports, id, generation, rollout);
        if (text !== null) return context.newResponse(text, 200, { "content-type": "application/json" }) as never; // JSON as it is stored
        if (found.state === "unknown") throw new ApiProblem(404, "activation_unknown", `no activation ${id} is known here`);
        if (found.state === "ended")
          throw new ApiProblem(404, "result_missing", `${id} has ended, and its result is not in the store any more`);
        return context.json(await stateNow(queues, found), 202);
      } finally {
        place?.leave();
      }
    },
  );

  routes.openapi(
    createRoute({
      method: "get",
      path: "/activations/{id}/events",
      summary: "What happens in it, live, as server-sent events; the last one is `ended`",
      middleware: [requireScope("read")] as const,
      request: {
        params: activationParam,
        headers: z.object({
          "last-event-id": z
            .string()
            .regex(/^\d{1,15}-\d{1,15}$/, "the id of an event")
            .optional()
            .openapi({ description: "go on after this one" }),
        }),
      },
      responses: {
        200: { description: "events; the data of each is one", content: { "text/event-stream": { schema: eventReply } } },
        204: { description: "it has ended, and there is nothing after Last-Event-ID" },
        404: problem("not known here"),
        ...away,
      },
    }),
    async (context) => {
      const { id } = context.req.valid("param");
      const after = context.req.valid("header")["last-event-id"] ?? "0";
      const [found] = await findKnown(queues, [id]);
      if (found!.state === "unknown") throw new ApiProblem(404, "activation_unknown", `no activation ${id} is known here`);
      // So that an EventSource, which connects again after each end, stops.
      if (after !== "0" && (await nothingAfter(queues, found!, after))) return context.body(null, 204);
      const { signal, leave } = room.enter(context.req.raw.signal);
      const body = bodyOf(eventStream(ports, id, { after, heartbeatMs: HEARTBEAT_MS, signal }), leave);
      return context.newResponse(body, 200, {
        "content-type": "text/event-stream; charset=utf-8",
        "cache-control": "no-store",
        "x-accel-buffering": "no",
      });
    },
  );
  return routes;
}

/** It has ended, and `after` is the last of its events. */
async function nothingAfter({ redis }: Queues, { state, activation_id }: FoundActivation, after: string): Promise<boolean> {
  const [last] = await readProgress(redis, activation_id, 1);
  if (last !== undefined && isAfter(last.id, after)) return false;
  return state === "ended" || (last !== undefined && isEnd(last)); // its record may be a moment behind
}
