// SPDX-License-Identifier: Apache-2.0
import { createCipheriv, createDecipheriv, createHmac, randomBytes } from "node:crypto";
import type { SessionActivation } from "../contract/activation.ts";
import { RollcallError } from "../errors.ts";
import type { SecretKey, SecretKeys } from "./secret-keys.ts";
import { secretSlots } from "./secret-slots.ts";

/** A secret string as it is kept in Redis; bytes in base64. Once the activation has ended only key_id and digest remain. */
export interface SealedSecret {
  sealed: 1;
  key_id: string;
  /** Equal for equal secrets of the same field, activation and key. */
  digest: string;
  nonce?: string;
  ciphertext?: string;
  tag?: string;
}

/** An activation as JSON, with each secret string replaced by a {@link SealedSecret}. What it holds is not validated. */
export type SealedActivation = Record<string, unknown> & { activation_id: string };

/** Seals every secret of an activation with the first key, or with the one called `keyId` when it is among them. Pure but for the nonces. */
export function sealActivation(activation: SessionActivation, keys: SecretKeys, keyId?: string): SealedActivation {
  const key = keys.find(({ id }) => id === keyId) ?? keys[0];
  const sealed = structuredClone<SealedActivation>(activation);
  for (const { path, holder, key: name } of secretSlots(sealed)) {
    if (typeof holder[name] === "string") holder[name] = sealText(holder[name], key, placeOf(activation.activation_id, path));
  }
  return sealed;
}

/**
 * The activation with its secrets in clear. Throws RollcallError "secret_key_missing" when it was sealed with a key that
 * is not among `keys`, "seal_broken" when a sealed value was changed, moved to another place, or deleted after the end.
 */
export function openActivation(sealed: SealedActivation, keys: SecretKeys): Record<string, unknown> {
  const opened = structuredClone(sealed);
  for (const { path, holder, key: name } of secretSlots(opened)) {
    const value = holder[name];
    if (typeof value !== "string") holder[name] = openSecret(value as SealedSecret, keys, sealed.activation_id, path);
  }
  return opened;
}

/** Ids of the keys that an activation was sealed with. */
export function sealedWith(sealed: SealedActivation): string[] {
  const ids = secretSlots(sealed).flatMap(({ holder, key }) => (isSealed(holder[key]) ? [holder[key].key_id] : []));
  return [...new Set(ids)];
}

/** Without what could be opened; whether another activation has the same content can still be told. */
export function withoutSecrets(sealed: SealedActivation): SealedActivation {
  const stripped = structuredClone(sealed);
  for (const { holder, key } of secretSlots(stripped)) {
    const value = holder[key];
    if (isSealed(value)) holder[key] = { sealed: 1, key_id: value.key_id, digest: value.digest } satisfies SealedSecret;
    else delete holder[key];
  }
  return stripped;
}

function isSealed(value: unknown): value is SealedSecret {
  return value !== null && typeof value === "object" && "sealed" in value && value.sealed === 1;
}

/** Seals one text for a place of its own: opened only with the same owner and path. Pure but for the nonce. */
export function sealSecret(text: string, [first]: SecretKeys, owner: string, path: string): SealedSecret {
  return sealText(text, first, placeOf(owner, path));
}

function placeOf(owner: string, path: string): string {
  return `${owner}\0${path}`;
}

function sealText(text: string, key: SecretKey, place: string): SealedSecret {
  const nonce = randomBytes(12);
  const cipher = createCipheriv("aes-256-gcm", key.sealing, nonce).setAAD(Buffer.from(place, "utf8"));
  const ciphertext = Buffer.concat([cipher.update(text, "utf8"), cipher.final()]);
  return {
    sealed: 1,
    key_id: key.id,
    digest: createHmac("sha256", key.digesting).update(`${place}\0${text}`, "utf8").digest("base64"),
    nonce: nonce.toString("base64"),
    ciphertext: ciphertext.toString("base64"),
    tag: cipher.getAuthTag().toString("base64"),
  };
}

/** The inverse of {@link sealSecret}, with the same owner and path. Throws as {@link openActivation} does. */
export function openSecret(value: SealedSecret, keys: SecretKeys, owner: string, path: string): string {
  const key = keys.find(({ id }) => id === value.key_id);
  if (key === undefined) {
    throw new RollcallError(
      "secret_key_missing",
      `${owner} was sealed with key ${value.key_id}, which is not among ours (${keys.map(({ id }) => id).join(", ")}): ` +
        "add it to ROLLCALL_SECRET_KEY",
    );
  }
  try {
    const [nonce, ciphertext, tag] = [value.nonce, value.ciphertext, value.tag].map((part) => Buffer.from(part!, "base64"));
    const decipher = createDecipheriv("aes-256-gcm", key.sealing, nonce!, { authTagLength: 16 });
    decipher.setAAD(Buffer.from(placeOf(owner, path), "utf8")).setAuthTag(tag!);
    return Buffer.concat([decipher.update(ciphertext!), decipher.final()]).toString("utf8");
  } catch (error) {
    throw new RollcallError("seal_broken", `${path} of ${owner} cannot be opened: it was changed after it was sealed`, {
      cause: error,
    });
  }
}
