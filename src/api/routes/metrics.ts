// SPDX-License-Identifier: Apache-2.0
import { createRoute, z } from "@hono/zod-openapi";
import type { Exposition } from "../../telemetry/exposition.ts";
import type { ApiKeys } from "../api-keys.ts";
import { problem } from "../answers.ts";
import { authenticateByKey } from "../authenticate.ts";
import { ofAllRuns } from "../owned.ts";
import { requireScope } from "../guards.ts";
import { newRoutes, type Api } from "../new-routes.ts";

/** For Prometheus, which sends a key as a bearer token. It says nothing of any one activation. */
export function metricsRoutes({ apiKeys, exposition }: { apiKeys: ApiKeys; exposition: Exposition }): Api {
  const routes = newRoutes();
  routes.openapi(
    createRoute({
      method: "get",
      path: "/metrics",
      summary: "Numbers of this process and of the whole queue, in Prometheus' text format",
      middleware: [authenticateByKey(apiKeys), requireScope("read"), ofAllRuns] as const,
      responses: {
        200: { description: "all metrics", content: { "text/plain": { schema: z.string() } } },
        401: problem("no key, or none that is known"),
      },
    }),
    async (context) => {
      const { type, text } = await exposition.render();
      return context.text(text, 200, { "content-type": type });
    },
  );
  return routes;
}
