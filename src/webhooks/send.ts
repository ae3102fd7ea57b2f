// SPDX-License-Identifier: Apache-2.0
import { UnrecoverableError } from "bullmq";
import type { SecretKeys } from "../activation/secret-keys.ts";
import type { ArtifactStore } from "../artifacts/types.ts";
import type { ActivationResult } from "../contract/result.ts";
import { messageOf, RollcallError } from "../errors.ts";
import { deliverable } from "../queue/deliver.ts";
import type { Queues } from "../queue/queues.ts";
import { buildSecretSet, redactText } from "../redact/index.ts";
import { asRolloutResult } from "../resources/documents.ts";
import { printable } from "../printable.ts";
import { postBounded, type PostAnswer } from "./post.ts";
import { deliveryId, type PushJobData } from "./push.ts";
import { signedHeaders, webhookKey } from "./sign.ts";
import { disableWebhook, opened, type Webhook } from "./subscription.ts";

/** How webhooks are sent; times in ms. */
export interface SendSettings {
  timeout_ms: number;
  max_attempts: number;
  base_ms: number;
  max_ms: number;
  allow_hosts: readonly string[];
  /** Requests at once to one receiver, over all servers. */
  concurrency: number;
}

export interface SendPorts {
  queues: Queues;
  keys: SecretKeys;
  store: ArtifactStore;
  version: string;
  settings: SendSettings;
}

/** Thrown for a try that may succeed another time. Its message is kept as the job's reason: bounded, and free of secrets. */
export class SendFailed extends Error {
  readonly retryAfterMs: number | null;
  constructor(message: string, retryAfterMs: number | null) {
    super(message);
    this.name = "SendFailed";
    this.retryAfterMs = retryAfterMs;
  }
}

const SHOWN = 200;

/**
 * Tries once to send an end to a webhook; `failed` tries came before. Answers the receiver's status. Throws SendFailed, or
 * UnrecoverableError when no other try will be made: it is a dead letter then.
 */
export async function sendOnce(
  ports: SendPorts,
  webhook: Webhook,
  data: PushJobData,
  failed: number,
  signal: AbortSignal,
): Promise<{ status: number }> {
  const { queues, keys, store, version, settings } = ports;
  const committed = await store.readCommitted(data.activation_id, data.generation);
  if (committed === null) throw new UnrecoverableError(`the artifact store ${store.id} has no result of ${data.activation_id} any more`);
  const { url, secret } = opened(webhook, keys);
  const result = JSON.parse(committed.text) as ActivationResult;
  const body = await bodyOf(queues, (await asRolloutResult(store, result)) ?? result, store);
  const id = deliveryId(webhook.name, data);
  const signed = signedHeaders(webhookKey(secret)!, { id, at: Date.now(), body });
  const headers = { "content-type": "application/json", "user-agent": `rollcall/${version}`, ...signed };
  const quiet = (text: string): string => redactText(buildSecretSet([{ value: secret }, { value: url }]), printable(text)).slice(0, SHOWN);
  let answer: PostAnswer;
  try {
    answer = await postBounded(url, { headers, body, timeoutMs: settings.timeout_ms, allowHosts: settings.allow_hosts, signal });
  } catch (error) {
    if (signal.aborted) throw error;
    const final = error instanceof RollcallError && ["address_refused", "https_needed"].includes(error.code);
    throw failure(quiet(messageOf(error)), { final, failed, retryAfterMs: null });
  }
  const { status, retryAfterMs, text } = answer;
  if (status >= 200 && status < 300) return { status };
  const said = text.trim() === "" ? `HTTP ${status}` : `HTTP ${status}: ${quiet(text.trim())}`;
  if (status === 410) await disableWebhook(queues, webhook, "the receiver answered 410: it is gone");
  throw failure(said, { final: status === 410, failed, retryAfterMs });

  function failure(reason: string, about: { final: boolean; failed: number; retryAfterMs: number | null }): Error {
    if (about.final || about.failed + 1 >= settings.max_attempts) return new UnrecoverableError(reason);
    return new SendFailed(reason, about.retryAfterMs);
  }
}

/** Standard Webhooks' shape: what happened, when, and the result as results queues hold it, a large one by reference. */
async function bodyOf(queues: Queues, result: ActivationResult, store: ArtifactStore): Promise<string> {
  const data = await deliverable(queues.settings, result, store);
  return JSON.stringify({ type: `activation.${result.status}`, timestamp: result.ended_at, data });
}

const GROWTH = 4;
/** What a receiver may put off at most. */
const LONGEST_AFTER_MS = 86_400_000;

/**
 * The pause after the n-th failed try: between half of base * 4^(n-1), at most `max_ms`, and the whole; longer where the receiver
 * said so. `random` in [0, 1). Pure.
 */
export function sendPauseMs(
  { base_ms, max_ms }: Pick<SendSettings, "base_ms" | "max_ms">,
  n: number,
  retryAfter: number | null,
  random: number,
): number {
  const most = Math.min(max_ms, base_ms * GROWTH ** Math.max(0, n - 1));
  return Math.round(Math.max(most * (0.5 + random / 2), Math.min(LONGEST_AFTER_MS, retryAfter ?? 0)));
}
