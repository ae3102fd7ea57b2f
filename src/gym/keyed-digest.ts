// SPDX-License-Identifier: Apache-2.0
import { createHmac } from "node:crypto";
import { stringify } from "safe-stable-stringify";
import type { SecretKeys } from "../activation/secret-keys.ts";

/** Tells whether two payloads are the same without keeping them. Keyed: they hold tokens, which nobody may try out against it. */
export interface KeyedDigest {
  key_id: string;
  hmac: string;
}

/** Over the canonical JSON of a parsed payload: the order of fields and defaults spelt out make no difference. Pure. */
export function keyedDigest([first]: SecretKeys, payload: unknown): KeyedDigest {
  return { key_id: first.id, hmac: hmacOf(first.digesting, payload) };
}

/** False too when its key is not among ours any more. Pure. */
export function hasDigest(keys: SecretKeys, digest: KeyedDigest, payload: unknown): boolean {
  const key = keys.find(({ id }) => id === digest.key_id);
  return key !== undefined && hmacOf(key.digesting, payload) === digest.hmac;
}

function hmacOf(key: Buffer, payload: unknown): string {
  return createHmac("sha256", key)
    .update(`agent session payload\0${stringify(payload)}`, "utf8")
    .digest("base64");
}
