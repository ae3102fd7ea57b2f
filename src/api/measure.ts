// SPDX-License-Identifier: Apache-2.0
import type { Context } from "hono";
import { createMiddleware } from "hono/factory";
import { routePath } from "hono/route";
import type { AnsweredRequest } from "../telemetry/http-metrics.ts";
import type { Tracing } from "../telemetry/tracing.ts";
import type { ApiEnv } from "./guards.ts";

/** Tells of each request when its answer begins. */
export function measure(tell: (request: AnsweredRequest) => void) {
  return createMiddleware<ApiEnv>(async (context, next) => {
    const since = performance.now();
    await next();
    tell({ method: context.req.method, route: routeOf(context), status: context.res.status, ms: performance.now() - since });
  });
}

const TRACEPARENT = /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/;

/** A span for each request, in its caller's trace when it names one: never its path, query, headers or body. */
export function traced(tracing: Tracing) {
  return createMiddleware<ApiEnv>(async (context, next) => {
    const given = context.req.header("traceparent") ?? "";
    const parent = TRACEPARENT.test(given) ? given : undefined;
    const { method } = context.req;
    await tracing.within(method, { kind: "server", parent, attributes: { "http.request.method": method } }, async (span) => {
      await next();
      const route = routeOf(context) ?? "none";
      const { status } = context.res;
      span.rename(`${method} ${route}`);
      span.set({ "http.route": route, "http.response.status_code": status });
      if (status >= 500) span.fail(String(status));
    });
  });
}

/** The pattern that was matched, not the path that was asked for; null where only middleware was. */
function routeOf(context: Context<ApiEnv>): string | null {
  const pattern = routePath(context, -1);
  return pattern === "" || pattern.endsWith("*") ? null : pattern;
}
