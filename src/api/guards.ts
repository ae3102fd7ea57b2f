// SPDX-License-Identifier: Apache-2.0
import { randomUUID } from "node:crypto";
import { createMiddleware } from "hono/factory";
import { RateLimiterMemory, type RateLimiterRes } from "rate-limiter-flexible";
import type { Logger } from "pino";
import type { Caller, Scope } from "./api-keys.ts";
import { ApiProblem } from "./problem.ts";

export interface ApiEnv {
  Variables: { caller: Caller; request_id: string; log: Logger };
}

const REQUEST_ID = /^[A-Za-z0-9_.:-]{1,128}$/;

/** Gives the request an id (the caller's own when it is a plain one), and logs its end: never its query, headers or body. */
export function requestLog(log: Logger) {
  return createMiddleware<ApiEnv>(async (context, next) => {
    const given = context.req.header("x-request-id");
    const request_id = given !== undefined && REQUEST_ID.test(given) ? given : randomUUID();
    const child = log.child({ request_id });
    context.set("request_id", request_id);
    context.set("log", child);
    context.header("x-request-id", request_id);
    const since = performance.now();
    await next();
    const { method, path } = context.req;
    const status = context.res.status;
    child[status >= 500 ? "error" : "info"](
      { method, path, status, ms: Math.round(performance.now() - since), caller: context.var.caller?.name },
      "request",
    );
  });
}

/** A name that a browser was led to resolve to this address must not reach the API (DNS rebinding). */
export function hostCheck(allowed: readonly string[]) {
  return createMiddleware(async (context, next) => {
    const host = context.req.header("host") ?? "";
    const name = host
      .replace(/:\d+$/, "")
      .replace(/^\[(.*)\]$/, "$1")
      .toLowerCase();
    if (!allowed.includes("*") && !allowed.includes(name)) {
      throw new ApiProblem(421, "host_not_allowed", "the Host header names a host that this server does not serve; set api.hosts");
    }
    await next();
  });
}

export function requireScope(scope: Scope) {
  return createMiddleware<ApiEnv>(async (context, next) => {
    if (!context.var.caller.may(scope)) {
      throw new ApiProblem(403, "scope_missing", `the key ${context.var.caller.name} lacks the scope ${scope}`);
    }
    await next();
  });
}

/** Requests of one key, per second, in this process. */
export function rateLimit(perSecond: number) {
  const limiter = new RateLimiterMemory({ points: perSecond, duration: 1 });
  return createMiddleware<ApiEnv>(async (context, next) => {
    try {
      await limiter.consume(context.var.caller.name);
    } catch (rejected) {
      const seconds = Math.max(1, Math.ceil((rejected as RateLimiterRes).msBeforeNext / 1_000));
      throw new ApiProblem(429, "too_many_requests", `more than ${perSecond} requests a second with this key`, {
        headers: { "retry-after": String(seconds) },
      });
    }
    await next();
  });
}
