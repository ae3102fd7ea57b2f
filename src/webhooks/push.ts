// SPDX-License-Identifier: Apache-2.0
import { createHash } from "node:crypto";
import type { ActivationResult } from "../contract/result.ts";
import type { Queues } from "../queue/queues.ts";
import { allWebhooks, type WebhookFilter } from "./subscription.ts";

/** Data of a job in a webhook's queue: which end. What is sent is read from the artifact store. */
export interface PushJobData {
  activation_id: string;
  generation: number;
  run_id: string;
}

/**
 * Queues an end for every webhook that wants it. Its id is made from the webhook and the end, so doing it twice sends once. Costs one
 * look at Redis where there is none.
 */
export async function pushEnd(queues: Queues, result: ActivationResult, replyTo: string | null): Promise<void> {
  const { activation_id, generation, run_id } = result;
  for (const webhook of await allWebhooks(queues)) {
    if (webhook.disabled !== null || !wants(webhook, result, replyTo)) continue;
    const data: PushJobData = { activation_id, generation, run_id };
    await queues.webhook(webhook.name).add("push", data, {
      jobId: deliveryId(webhook.name, data),
      // Whoever sends decides when it is enough.
      attempts: Number.MAX_SAFE_INTEGER,
      backoff: { type: "custom" },
      stackTraceLimit: 0,
      removeOnComplete: { age: Math.ceil(queues.settings.keep_ended_ms / 1_000) },
      removeOnFail: { age: Math.ceil(queues.settings.keep_dead_ms / 1_000) },
    });
  }
}

/** Pure. */
export function wants(
  { run_id, reply_to, events }: WebhookFilter,
  result: Pick<ActivationResult, "run_id" | "status">,
  replyTo: string | null,
): boolean {
  if (run_id !== null && run_id !== result.run_id) return false;
  if (reply_to !== null && (replyTo === null || !reply_to.includes(replyTo))) return false;
  return events.includes(`activation.${result.status}`);
}

/** What receivers know a delivery by: the same for each try of one end. Has no dot, which would blur what is signed. Pure. */
export function deliveryId(name: string, { activation_id, generation }: Pick<PushJobData, "activation_id" | "generation">): string {
  return `msg_${createHash("sha256").update(`${name}\0${activation_id}\0${generation}`).digest("hex").slice(0, 32)}`;
}
