// SPDX-License-Identifier: Apache-2.0
import { openSecret, sealSecret, type SealedSecret } from "../activation/seal.ts";
import type { SecretKeys } from "../activation/secret-keys.ts";
import { statusSchema, type Status } from "../contract/result.ts";
import { keys as names } from "../queue/names.ts";
import type { Queues } from "../queue/queues.ts";
import { runScript, script } from "../queue/script.ts";

/** Each end looks at all of them, and each server process has a connection for each. */
export const MAX_WEBHOOKS = 50;

type WebhookEvent = `activation.${Status}`;
export const WEBHOOK_EVENTS = statusSchema.options.map((status) => `activation.${status}` as const);

/** Which ends are pushed: of one run or all, for some results queues or any, some outcomes or all. */
export interface WebhookFilter {
  run_id: string | null;
  reply_to: string[] | null;
  events: WebhookEvent[];
}

/** As it is kept in Redis. */
export interface Webhook extends WebhookFilter {
  name: string;
  /** Scheme, host and port of the URL; the rest of it may be a secret. */
  origin: string;
  url: SealedSecret;
  secret: SealedSecret;
  /** ISO 8601 */
  changed_at: string;
  changed_by: string;
  /** Why nothing is pushed; null = it is. */
  disabled: { at: string; reason: string } | null;
}

export async function allWebhooks({ redis }: Pick<Queues, "redis">): Promise<Webhook[]> {
  const found = Object.values(await redis.hgetall(names.webhooks)).map((text) => JSON.parse(text) as Webhook);
  return found.sort((a, b) => a.name.localeCompare(b.name));
}

export async function findWebhook({ redis }: Pick<Queues, "redis">, name: string): Promise<Webhook | null> {
  const text = await redis.hget(names.webhooks, name);
  return text === null ? null : (JSON.parse(text) as Webhook);
}

const PUT = script(`
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 and redis.call('HLEN', KEYS[1]) >= tonumber(ARGV[3]) then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return 1
`);

/** False: there are MAX_WEBHOOKS already. */
export async function saveWebhook({ redis }: Pick<Queues, "redis">, webhook: Webhook): Promise<boolean> {
  return (await runScript(redis, PUT, [names.webhooks], [webhook.name, JSON.stringify(webhook), MAX_WEBHOOKS])) === 1;
}

const DISABLE = script(`
if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
return 1
`);

/** Unless somebody has changed it since it was read. */
export async function disableWebhook({ redis }: Pick<Queues, "redis">, webhook: Webhook, reason: string): Promise<void> {
  const disabled: Webhook = { ...webhook, disabled: { at: new Date().toISOString(), reason } };
  await runScript(redis, DISABLE, [names.webhooks], [webhook.name, JSON.stringify(webhook), JSON.stringify(disabled)]);
}

/** Takes it off, with all that was still to be pushed. False: there is none of that name. */
export async function removeWebhook(queues: Queues, name: string): Promise<boolean> {
  const known = (await queues.redis.hdel(names.webhooks, name)) === 1;
  await queues.webhook(name).obliterate({ force: true });
  return known;
}

/** Sealed for this webhook and this place in it: moved elsewhere it cannot be opened. */
export function sealFor(name: string, field: "url" | "secret", text: string, keys: SecretKeys): SealedSecret {
  return sealSecret(text, keys, ownerOf(name), field);
}

/** Throws RollcallError "secret_key_missing" or "seal_broken". */
export function opened({ name, url, secret }: Webhook, keys: SecretKeys): { url: string; secret: string } {
  return { url: openSecret(url, keys, ownerOf(name), "url"), secret: openSecret(secret, keys, ownerOf(name), "secret") };
}

/** No activation has a colon in its id. */
function ownerOf(name: string): string {
  return `webhook:${name}`;
}
