// SPDX-License-Identifier: Apache-2.0
import { hkdfSync } from "node:crypto";
import type { Context } from "hono";
import { getSignedCookie, setSignedCookie } from "hono/cookie";
import type { SecretKey, SecretKeys } from "../activation/secret-keys.ts";

const SESSION_COOKIE = "agent_session_id";

/** The session that a request says it belongs to. unusable: there is a cookie, and it is none that a process of ours signed. */
export type CookieClaim = { kind: "none" } | { kind: "unusable" } | { kind: "session"; id: string };

/** Reads the cookie, whichever of the deployment's keys signed it. */
export async function readSessionCookie(context: Context, keys: SecretKeys): Promise<CookieClaim> {
  if (!/(^|;)\s*agent_session_id\s*=/.test(context.req.header("cookie") ?? "")) return { kind: "none" };
  for (const key of keys) {
    const id = await getSignedCookie(context, signingKey(key), SESSION_COOKIE);
    if (typeof id === "string" && id !== "") return { kind: "session", id };
  }
  return { kind: "unusable" };
}

/** For this answer. Not Secure: callers of this protocol speak plain HTTP to an address that only they reach. */
export function setSessionCookie(context: Context, id: string, [first]: SecretKeys): Promise<void> {
  return setSignedCookie(context, SESSION_COOKIE, id, signingKey(first), { path: "/", httpOnly: true, sameSite: "Lax" });
}

function signingKey({ digesting }: SecretKey): ArrayBuffer {
  return hkdfSync("sha256", digesting, "", "rollcall/1 agent session cookie", 32);
}
