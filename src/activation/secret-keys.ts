// SPDX-License-Identifier: Apache-2.0
import { createHash, hkdfSync } from "node:crypto";
import { RollcallError } from "../errors.ts";

export interface SecretKey {
  /** First 8 hex digits of the key's sha256; not secret. */
  readonly id: string;
  /** For AES-256-GCM. */
  readonly sealing: Buffer;
  /** For the HMAC by which equal secrets are told without opening them. */
  readonly digesting: Buffer;
}

/** The deployment's keys: the first seals, all open. */
export type SecretKeys = readonly [SecretKey, ...SecretKey[]];

/**
 * Reads ROLLCALL_SECRET_KEY: keys separated by commas, each 32 bytes in base64. Throws RollcallError
 * "secret_key_invalid", which names the position and never shows the value.
 */
export function parseSecretKeys(list: string): SecretKeys {
  const [first, ...rest] = list.split(",").map((text, index) => deriveKey(decodeKey(text.trim(), index)));
  return [first!, ...rest];
}

function decodeKey(text: string, index: number): Buffer {
  const key = Buffer.from(text, "base64");
  // Buffer.from skips what is not base64, so compare with the text again.
  if (key.length === 32 && key.toString("base64").replace(/=+$/, "") === text.replace(/=+$/, "")) return key;
  throw new RollcallError(
    "secret_key_invalid",
    `key ${index + 1} of ROLLCALL_SECRET_KEY is not 32 bytes in base64; make one with: openssl rand -base64 32`,
  );
}

function deriveKey(key: Buffer): SecretKey {
  const derive = (purpose: string): Buffer => Buffer.from(hkdfSync("sha256", key, "", `rollcall/1 ${purpose}`, 32));
  return { id: createHash("sha256").update(key).digest("hex").slice(0, 8), sealing: derive("seal"), digesting: derive("digest") };
}
