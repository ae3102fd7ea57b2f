// SPDX-License-Identifier: Apache-2.0
import type { Context } from "hono";
import type { SecretKeys } from "../activation/secret-keys.ts";
import { readSigned, setSigned, type CookieKind } from "../api/signed-cookie.ts";

const SESSION_COOKIE: CookieKind = { name: "agent_session_id", purpose: "agent session cookie" };

/** The session that a request says it belongs to. unusable: there is a cookie, and it is none that a process of ours signed. */
export type CookieClaim = { kind: "none" } | { kind: "unusable" } | { kind: "session"; id: string };

/** Reads the cookie, whichever of the deployment's keys signed it. */
export async function readSessionCookie(context: Context, keys: SecretKeys): Promise<CookieClaim> {
  if (!/(^|;)\s*agent_session_id\s*=/.test(context.req.header("cookie") ?? "")) return { kind: "none" };
  const signed = await readSigned(context, keys, SESSION_COOKIE);
  return signed === null ? { kind: "unusable" } : { kind: "session", id: signed.value };
}

/** For this answer. Not Secure: callers of this protocol speak plain HTTP to an address that only they reach. */
export function setSessionCookie(context: Context, id: string, keys: SecretKeys): Promise<void> {
  return setSigned(context, id, keys, { ...SESSION_COOKIE, sameSite: "Lax" });
}
