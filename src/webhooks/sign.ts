// SPDX-License-Identifier: Apache-2.0
import { createHmac, randomBytes } from "node:crypto";

/** Standard Webhooks 1.0.0: base64 after this. */
const PREFIX = "whsec_";

/** 256 bits. */
export function newWebhookSecret(): string {
  return PREFIX + randomBytes(32).toString("base64");
}

/** The bytes of a secret; null when it is none: 24 to 64 bytes in base64, with or without `whsec_`. Pure. */
export function webhookKey(secret: string): Buffer | null {
  const text = secret.startsWith(PREFIX) ? secret.slice(PREFIX.length) : secret;
  const key = Buffer.from(text, "base64");
  // Buffer.from skips what is not base64, so compare with the text again.
  return key.length >= 24 && key.length <= 64 && key.toString("base64") === text ? key : null;
}

/** The headers of Standard Webhooks for one try; `at` in ms since 1970. Pure. */
export function signedHeaders(key: Buffer, { id, at, body }: { id: string; at: number; body: string }): Record<string, string> {
  const timestamp = String(Math.floor(at / 1_000));
  const signature = createHmac("sha256", key).update(`${id}.${timestamp}.${body}`).digest("base64");
  return { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": `v1,${signature}` };
}
