// SPDX-License-Identifier: Apache-2.0
import { createRoute, z } from "@hono/zod-openapi";
import type { Context } from "hono";
import { RollcallError } from "../../errors.ts";
import { isAllowedHost } from "../../host/public-address.ts";
import { deadLetters, pushCounts, replayDead } from "../../webhooks/dead-letters.ts";
import { requireHttps, requirePublicLiteral } from "../../webhooks/address.ts";
import { newWebhookSecret, webhookKey } from "../../webhooks/sign.ts";
import {
  allWebhooks,
  findWebhook,
  MAX_WEBHOOKS,
  opened,
  removeWebhook,
  saveWebhook,
  sealFor,
  WEBHOOK_EVENTS,
  type Webhook,
} from "../../webhooks/subscription.ts";
import { away, json, problem, runParam } from "../answers.ts";
import { requireScope, type ApiEnv } from "../guards.ts";
import { newRoutes, type Api } from "../new-routes.ts";
import type { ApiPorts } from "../ports.ts";
import { ApiProblem } from "../problem.ts";

const MOST = 1_000;
const nameParam = z.object({
  name: z
    .string()
    .regex(/^[a-z0-9][a-z0-9-]{0,63}$/, "expected small letters, digits and hyphens")
    .openapi({ example: "billing" }),
});
const events = z.enum(WEBHOOK_EVENTS as [(typeof WEBHOOK_EVENTS)[number], ...(typeof WEBHOOK_EVENTS)[number][]]);
const webhookBody = z
  .strictObject({
    url: z
      .url({ protocol: /^https?$/, error: "expected an absolute http or https URL" })
      .max(2_000)
      .openapi({ description: "sealed, and never shown again" }),
    secret: z
      .string()
      .refine((text) => webhookKey(text) !== null, "expected 24 to 64 bytes in base64, after whsec_ or without it")
      .optional()
      .openapi({
        description: "what deliveries are signed with; without it the one it has is kept, or one is made and answered this once",
      }),
    run_id: runParam.shape.run_id.optional(),
    reply_to: z.array(z.string().max(200)).min(1).max(100).optional().openapi({ description: "only ends for these results queues" }),
    events: z.array(events).min(1).optional().openapi({ description: "default: all" }),
  })
  .openapi("SetWebhook");
export type SetWebhook = z.input<typeof webhookBody>;

const webhookReply = z
  .object({
    name: z.string(),
    /** Of its URL; the rest is not shown. */
    origin: z.string(),
    run_id: z.string().nullable(),
    reply_to: z.array(z.string()).nullable(),
    events: z.array(events),
    changed_at: z.string(),
    changed_by: z.string(),
    /** Why nothing is pushed to it. */
    disabled: z.object({ at: z.string(), reason: z.string() }).nullable(),
  })
  .openapi("Webhook");
const savedReply = webhookReply.extend({ secret: z.string().optional() }).openapi("SavedWebhook");
const listReply = z
  .object({
    webhooks: z.array(webhookReply.extend({ counts: z.object({ waiting: z.int(), sending: z.int(), sent: z.int(), dead: z.int() }) })),
  })
  .openapi("Webhooks");
const deadReply = z
  .object({
    dead: z.array(
      z.object({
        delivery_id: z.string(),
        activation_id: z.string(),
        generation: z.int(),
        run_id: z.string(),
        attempts: z.int(),
        failed_at: z.string(),
        reason: z.string(),
      }),
    ),
  })
  .openapi("DeadLetters");
const replayBody = z
  .strictObject({
    delivery_ids: z
      .array(z.string().regex(/^msg_[0-9a-f]{32}$/))
      .min(1)
      .max(MOST)
      .optional(),
  })
  .openapi("ReplayDead");
const replayReply = z.object({ replayed: z.int() }).openapi("Replayed");
const removedReply = z.object({ name: z.string(), removed: z.boolean() }).openapi("RemovedWebhook");
export type SavedWebhook = z.infer<typeof savedReply>;
export type WebhookList = z.infer<typeof listReply>;
export type DeadLetterList = z.infer<typeof deadReply>;
export type Replayed = z.infer<typeof replayReply>;
export type RemovedWebhook = z.infer<typeof removedReply>;

/** Who is told of ends over HTTP, and what could not be told. For admins: results leave the deployment by it. */
export function webhookRoutes(ports: ApiPorts): Api {
  const { queues, keys, webhook_hosts } = ports;
  const routes = newRoutes();
  const admin = requireScope("admin");
  const unknown = { 404: problem("there is no such webhook"), ...away };

  async function known(name: string): Promise<Webhook> {
    const webhook = await findWebhook(queues, name);
    if (webhook === null) throw new ApiProblem(404, "webhook_unknown", `there is no webhook ${name}`);
    return webhook;
  }

  routes.openapi(
    createRoute({
      method: "put",
      path: "/webhooks/{name}",
      summary: "Push results to a URL from now on; one that was disabled is enabled again",
      middleware: admin,
      request: { params: nameParam, body: { required: true, content: { "application/json": { schema: webhookBody } } } },
      responses: { 200: json(savedReply, "as it is now"), 422: problem("not usable"), ...away },
    }),
    async (context) => {
      const { name } = context.req.valid("param");
      const { url, secret: given, run_id = null, reply_to = null, events: wanted = [...WEBHOOK_EVENTS] } = context.req.valid("json");
      const { origin } = usableUrl(url, webhook_hosts);
      const before = await findWebhook(queues, name);
      const made = given === undefined && before === null ? newWebhookSecret() : undefined;
      const secret = given ?? made ?? opened(before!, keys).secret;
      const about = { name, origin, run_id, reply_to, events: wanted, ...changeBy(context) };
      const webhook: Webhook = {
        ...about,
        url: sealFor(name, "url", url, keys),
        secret: sealFor(name, "secret", secret, keys),
        disabled: null,
      };
      if (!(await saveWebhook(queues, webhook)))
        throw new ApiProblem(422, "webhooks_full", `there are ${MAX_WEBHOOKS} webhooks already; remove one`);
      return context.json({ ...shown(webhook), ...(made === undefined ? {} : { secret: made }) }, 200);
    },
  );

  routes.openapi(
    createRoute({
      method: "get",
      path: "/webhooks",
      summary: "All webhooks, and how their deliveries stand",
      middleware: admin,
      responses: { 200: json(listReply, "by name"), ...away },
    }),
    async (context) => {
      const all = await allWebhooks(queues);
      const webhooks = await Promise.all(all.map(async (one) => ({ ...shown(one), counts: await pushCounts(queues, one.name) })));
      return context.json({ webhooks }, 200);
    },
  );

  routes.openapi(
    createRoute({
      method: "delete",
      path: "/webhooks/{name}",
      summary: "Push nothing to it any more; what was waiting, and its dead letters, are dropped",
      middleware: admin,
      request: { params: nameParam },
      responses: { 200: json(removedReply, "it is gone"), ...away },
    }),
    async (context) => {
      const { name } = context.req.valid("param");
      return context.json({ name, removed: await removeWebhook(queues, name) }, 200);
    },
  );

  routes.openapi(
    createRoute({
      method: "get",
      path: "/webhooks/{name}/dead",
      summary: "What could not be pushed, the newest first",
      middleware: admin,
      request: {
        params: nameParam,
        query: z.object({
          offset: z.coerce.number().int().min(0).default(0),
          limit: z.coerce.number().int().min(1).max(MOST).default(100),
        }),
      },
      responses: { 200: json(deadReply, "dead letters"), ...unknown },
    }),
    async (context) => {
      const { name } = await known(context.req.valid("param").name);
      return context.json({ dead: await deadLetters(queues, name, context.req.valid("query")) }, 200);
    },
  );

  routes.openapi(
    createRoute({
      method: "post",
      path: "/webhooks/{name}/replay",
      summary: `Push dead letters again: those that are named, else the oldest, ${MOST} at most`,
      middleware: admin,
      request: { params: nameParam, body: { required: true, content: { "application/json": { schema: replayBody } } } },
      responses: { 200: json(replayReply, "how many"), ...unknown },
    }),
    async (context) => {
      const { name } = await known(context.req.valid("param").name);
      const { delivery_ids: ids = null } = context.req.valid("json");
      return context.json({ replayed: await replayDead(queues, name, { ids, most: MOST }) }, 200);
    },
  );
  return routes;
}

function changeBy(context: Context<ApiEnv>): Pick<Webhook, "changed_at" | "changed_by"> {
  return { changed_at: new Date().toISOString(), changed_by: context.var.caller.name };
}

function shown({ url: _url, secret: _secret, ...webhook }: Webhook): Omit<Webhook, "url" | "secret"> {
  return webhook;
}

/** What can be told without asking a resolver. Throws ApiProblem. */
function usableUrl(text: string, allowed: readonly string[]): URL {
  const url = new URL(text);
  if (url.username !== "" || url.password !== "" || url.hash !== "")
    throw new ApiProblem(422, "webhook_url", "the URL may have no user info and no fragment");
  if (isAllowedHost(url, allowed)) return url;
  try {
    requireHttps(url);
    requirePublicLiteral(url);
  } catch (error) {
    if (error instanceof RollcallError) throw new ApiProblem(422, error.code, error.message);
    throw error;
  }
  return url;
}
