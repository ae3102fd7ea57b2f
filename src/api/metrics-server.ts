// SPDX-License-Identifier: Apache-2.0
import type { Logger } from "pino";
import type { Exposition } from "../telemetry/exposition.ts";
import { answerThrown, answerUnknownRoute } from "./answer-problem.ts";
import type { ApiKeys } from "./api-keys.ts";
import { requestLog } from "./guards.ts";
import { newRoutes } from "./new-routes.ts";
import { metricsRoutes } from "./routes/metrics.ts";
import { serveHttp, type HttpServer } from "./server.ts";

/**
 * Serves `/metrics` of a process that has no API. It asks for a key wherever it listens: sandboxes share the host's loopback. The
 * caller closes it. Throws RollcallError "address_unusable".
 */
export async function serveMetrics(
  parts: { exposition: Exposition; apiKeys: ApiKeys; log: Logger },
  address: { host: string; port: number },
): Promise<HttpServer> {
  const app = newRoutes();
  app.use(requestLog(parts.log));
  app.route("/", metricsRoutes(parts));
  app.notFound(answerUnknownRoute);
  app.onError((thrown, context) => answerThrown(thrown, context, parts.log));
  return serveHttp(app.fetch, address);
}
