// SPDX-License-Identifier: Apache-2.0
import type { Context } from "hono";
import { createMiddleware } from "hono/factory";
import type { Caller } from "./api-keys.ts";
import type { ApiEnv } from "./guards.ts";
import { ApiProblem } from "./problem.ts";
import { isSameOrigin } from "./same-origin.ts";
import { signedInCaller, type SignInPorts } from "./sign-in-cookie.ts";

/** Who calls: by a key that is known, or from a browser that has signed in. 401 otherwise. */
export function authenticate(ports: SignInPorts) {
  return createMiddleware<ApiEnv>(async (context, next) => {
    const caller = await callerOf(context, ports);
    if (caller === null) throw nobody();
    context.set("caller", caller);
    await next();
  });
}

/** The same for pages: a browser that asks for one itself is sent to sign in first. No cache keeps what does not say otherwise. */
export function signedIn(ports: SignInPorts) {
  return createMiddleware<ApiEnv>(async (context, next) => {
    const caller = await callerOf(context, ports);
    if (caller === null) {
      if (!wantsPage(context)) throw nobody();
      const { pathname, search } = new URL(context.req.url);
      return context.redirect(`/sign-in?next=${encodeURIComponent(pathname + search)}`);
    }
    context.set("caller", caller);
    await next();
    if (!context.res.headers.has("cache-control")) context.header("cache-control", "no-store");
    return undefined;
  });
}

/** Throws ApiProblem 403 for a browser's request that does not come from a page of this server. */
export function requireSameOrigin(context: Context): void {
  const { host, origin, "sec-fetch-site": site } = context.req.header();
  if (isSameOrigin({ host, origin, site })) return;
  throw new ApiProblem(403, "cross_origin", "a page of another site may not do this here; programs send a key instead of a cookie");
}

/** With a cookie alone, what is no mere look must come from a page of ours: 403. */
async function callerOf(context: Context<ApiEnv>, ports: SignInPorts): Promise<Caller | null> {
  const authorization = context.req.header("authorization");
  if (authorization !== undefined) {
    const [scheme, key] = authorization.split(" ");
    return scheme?.toLowerCase() === "bearer" && key ? ports.apiKeys.find(key) : null;
  }
  const caller = await signedInCaller(context, ports);
  if (caller !== null && !isLook(context)) requireSameOrigin(context);
  return caller;
}

function wantsPage(context: Context): boolean {
  return isLook(context) && (context.req.header("accept") ?? "").includes("text/html");
}

function isLook({ req: { method } }: Context): boolean {
  return method === "GET" || method === "HEAD";
}

function nobody(): ApiProblem {
  return new ApiProblem(401, "key_missing", "send a key that this deployment knows: Authorization: Bearer KEY", {
    headers: { "www-authenticate": "Bearer" },
  });
}
