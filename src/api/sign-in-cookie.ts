// SPDX-License-Identifier: Apache-2.0
import { createHmac, timingSafeEqual } from "node:crypto";
import type { Context } from "hono";
import { deleteCookie } from "hono/cookie";
import type { SecretKey } from "../activation/secret-keys.ts";
import { digestOfKey, type Caller } from "./api-keys.ts";
import type { ApiPorts } from "./ports.ts";
import { readSigned, setSigned, type CookieKind } from "./signed-cookie.ts";

const SIGN_IN: CookieKind = { name: "rollcall_sign_in", purpose: "sign-in cookie" };

/** What signing in works with. */
export type SignInPorts = Pick<ApiPorts, "apiKeys" | "keys" | "signIn">;

/**
 * Signs a browser in with a key that is known, for `signIn.hours`. The cookie says until when, and the digest of the key under
 * the deployment's key: any process of the API takes it, nobody can work the key out of it, and it means nothing any more when
 * the key is taken away. What it allows is what the key allows at the time of each request.
 */
export async function setSignIn(context: Context, apiKey: string, { keys, signIn }: SignInPorts): Promise<void> {
  const seconds = Math.round(signIn.hours * 3_600);
  const until = Math.floor(Date.now() / 1_000) + seconds;
  const value = `${until}.${tagOf(digestOfKey(apiKey), keys[0]).toString("base64url")}`;
  await setSigned(context, value, keys, {
    ...SIGN_IN,
    sameSite: "Strict",
    maxAge: seconds,
    secure: signIn.secure || cameByHttps(context),
  });
}

export function endSignIn(context: Context): void {
  deleteCookie(context, SIGN_IN.name, { path: "/" });
}

/** Whom the browser is signed in as; null: nobody, not any more, or with a key that is known no more. */
export async function signedInCaller(context: Context, { apiKeys, keys }: SignInPorts): Promise<Caller | null> {
  const signed = await readSigned(context, keys, SIGN_IN);
  const [, until, tag] = /^(\d{1,12})\.([\w-]{43})$/.exec(signed?.value ?? "") ?? [];
  if (signed === null || until === undefined || tag === undefined || Number(until) * 1_000 <= Date.now()) return null;
  const wanted = Buffer.from(tag, "base64url");
  return apiKeys.findByDigest((digest) => timingSafeEqual(tagOf(digest, signed.key), wanted));
}

function tagOf(digest: Buffer, { digesting }: SecretKey): Buffer {
  return createHmac("sha256", digesting).update("sign-in\0").update(digest).digest();
}

/** Also where something in front of us ends TLS. Who lies about it gets a cookie that his browser will not send. */
function cameByHttps(context: Context): boolean {
  return new URL(context.req.url).protocol === "https:" || context.req.header("x-forwarded-proto")?.split(",")[0]?.trim() === "https";
}
