// SPDX-License-Identifier: Apache-2.0
import { createRoute, z } from "@hono/zod-openapi";
import { resultClaims, type ClaimedResult } from "../../queue/result-claims.ts";
import { unreadResults } from "../../queue/unread-results.ts";
import { away, json, problem } from "../answers.ts";
import { newRoutes, type Api } from "../new-routes.ts";
import { requireScope } from "../guards.ts";
import { resultReply } from "../messages.ts";
import type { ApiPorts } from "../ports.ts";
import type { WaitingRoom } from "../waiting-room.ts";

const queue = z
  .string()
  .regex(/^results[A-Za-z0-9_.-]{0,200}$/, 'expected "results" followed by letters, digits, underscore, dot or hyphen')
  .default("results")
  .openapi({ description: "the activations' reply_to" });

const claimBody = z
  .strictObject({
    queue,
    max: z.int().min(1).max(100).default(1),
    /** Seconds to wait for the first. */
    wait: z.number().min(0).max(3_600).default(0),
    /** Not acknowledged within this, it comes again. */
    lease_seconds: z.number().min(1).max(43_200).default(60),
  })
  .openapi("ClaimResults");
const claimReply = z
  .object({
    results: z.array(
      z.object({ result_id: z.string(), receipt: z.string(), delivery: z.int(), lease_until: z.string(), result: resultReply }),
    ),
  })
  .openapi("ClaimedResults");
const ackBody = z
  .strictObject({
    queue,
    results: z
      .array(z.strictObject({ result_id: z.string().min(1).max(250), receipt: z.uuid() }))
      .min(1)
      .max(1_000),
  })
  .openapi("AckResults");
const ackReply = z
  .object({ results: z.array(z.object({ result_id: z.string(), outcome: z.enum(["acked", "lost", "unknown"]) })) })
  .openapi("AckedResults");
const unreadReply = z
  .object({
    queues: z.array(z.object({ queue: z.string(), unread: z.int(), claimed: z.int(), oldest_seconds: z.number().nullable() })),
  })
  .openapi("UnreadResults");
export type ClaimResults = z.input<typeof claimBody>;
export type ClaimedResults = z.infer<typeof claimReply>;
export type AckResults = z.input<typeof ackBody>;
export type AckedResults = z.infer<typeof ackReply>;
export type UnreadResults = z.infer<typeof unreadReply>;

/** Leases that ran out are seen only by looking. */
const LOOK_MS = 2_000;

/** Results for consumers in any language: claim, work, acknowledge. */
export function resultRoutes(ports: ApiPorts, room: WaitingRoom): Api {
  const { queues, watch } = ports;
  const claims = resultClaims(queues);
  const routes = newRoutes();

  async function claimWithin(body: z.infer<typeof claimBody>, signal: AbortSignal): Promise<ClaimedResult[]> {
    const until = performance.now() + body.wait * 1_000;
    for (;;) {
      const { key, last } = await claims.news(body.queue); // before the look: what comes after it is news
      const claimed = await claims.claim(body.queue, { max: body.max, leaseMs: body.lease_seconds * 1_000 });
      const left = until - performance.now();
      if (claimed.length > 0 || left <= 0 || signal.aborted) return claimed;
      await watch.changed(key, last, { signal, timeoutMs: Math.min(left, LOOK_MS) });
    }
  }

  routes.openapi(
    createRoute({
      method: "post",
      path: "/results/claim",
      summary: "Take results for a time; what is not acknowledged by then comes again",
      middleware: requireScope("enqueue"),
      request: { body: { required: true, content: { "application/json": { schema: claimBody } } } },
      responses: {
        200: json(claimReply, "at most `max`, the oldest first; none where none came in time"),
        422: problem("not usable"),
        ...away,
      },
    }),
    async (context) => {
      const body = context.req.valid("json");
      const request = context.req.raw.signal;
      const place = body.wait > 0 ? room.enter(request) : null;
      try {
        const claimed = await claimWithin(body, place?.signal ?? request);
        const lease_until = new Date(Date.now() + body.lease_seconds * 1_000).toISOString();
        return context.json({ results: claimed.map((each) => ({ ...each, lease_until })) }, 200);
      } finally {
        place?.leave();
      }
    },
  );

  routes.openapi(
    createRoute({
      method: "post",
      path: "/results/ack",
      summary: "These results are taken care of; any process of the API may be told",
      middleware: requireScope("enqueue"),
      request: { body: { required: true, content: { "application/json": { schema: ackBody } } } },
      responses: { 200: json(ackReply, "one for each, in order"), 422: problem("not usable"), ...away },
    }),
    async (context) => {
      const { queue: name, results } = context.req.valid("json");
      const outcomes = await claims.ack(name, results);
      return context.json({ results: results.map(({ result_id }, index) => ({ result_id, outcome: outcomes[index]! })) }, 200);
    },
  );

  routes.openapi(
    createRoute({
      method: "get",
      path: "/results/queues",
      summary: "How many results wait in each results queue",
      middleware: requireScope("read"),
      responses: { 200: json(unreadReply, "all queues that anything was delivered to"), ...away },
    }),
    async (context) => context.json({ queues: await unreadResults(queues) }, 200),
  );
  return routes;
}
