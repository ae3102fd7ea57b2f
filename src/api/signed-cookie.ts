// SPDX-License-Identifier: Apache-2.0
import { hkdfSync } from "node:crypto";
import type { Context } from "hono";
import { getSignedCookie, setSignedCookie } from "hono/cookie";
import type { SecretKey, SecretKeys } from "../activation/secret-keys.ts";

/** One kind of cookie that processes of a deployment sign for each other. */
export interface CookieKind {
  name: string;
  /** What the signing key is derived for: a cookie of one kind is none of another. */
  purpose: string;
}

/** What it says, and the key that signed it; null: there is none, or none that a process of ours signed. */
export async function readSigned(
  context: Context,
  keys: SecretKeys,
  { name, purpose }: CookieKind,
): Promise<{ value: string; key: SecretKey } | null> {
  for (const key of keys) {
    const value = await getSignedCookie(context, signingKey(key, purpose), name);
    if (typeof value === "string" && value !== "") return { value, key };
  }
  return null;
}

/** For this answer; the first key signs. Never one that scripts of a page can read. */
export function setSigned(
  context: Context,
  value: string,
  [first]: SecretKeys,
  { name, purpose, ...options }: CookieKind & { sameSite: "Lax" | "Strict"; secure?: boolean; maxAge?: number },
): Promise<void> {
  return setSignedCookie(context, name, value, signingKey(first, purpose), { path: "/", httpOnly: true, ...options });
}

function signingKey({ digesting }: SecretKey, purpose: string): ArrayBuffer {
  return hkdfSync("sha256", digesting, "", `rollcall/1 ${purpose}`, 32);
}
