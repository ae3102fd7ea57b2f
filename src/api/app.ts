// SPDX-License-Identifier: Apache-2.0
import { bodyLimit } from "hono/body-limit";
import { secureHeaders } from "hono/secure-headers";
import { answerThrown, answerUnknownRoute } from "./answer-problem.ts";
import { authenticate } from "./authenticate.ts";
import { messageComponents } from "./components.ts";
import { hostCheck, rateLimit, requestLog } from "./guards.ts";
import { measure, traced } from "./measure.ts";
import { newRoutes, type Api } from "./new-routes.ts";
import { pageRoutes } from "./pages.ts";
import type { ApiPorts } from "./ports.ts";
import { ownedOnly } from "./owned.ts";
import { ApiProblem } from "./problem.ts";
import { artifactRoutes } from "./routes/artifacts.ts";
import { activationRoutes } from "./routes/activations.ts";
import { breakerRoutes } from "./routes/breaker.ts";
import { budgetRoutes } from "./routes/budget.ts";
import { endRoutes } from "./routes/ends.ts";
import { docsRoutes } from "./routes/docs.ts";
import { healthRoutes } from "./routes/health.ts";
import { manyRoutes } from "./routes/many.ts";
import { metricsRoutes } from "./routes/metrics.ts";
import { refusedRoutes } from "./routes/refused.ts";
import { sealRoutes } from "./routes/seal.ts";
import { fileRoutes } from "./routes/files.ts";
import { resultRoutes } from "./routes/results.ts";
import { runListRoutes } from "./routes/run-list.ts";
import { runRoutes } from "./routes/runs.ts";
import { storyRoutes } from "./routes/story.ts";
import { webhookRoutes } from "./routes/webhooks.ts";
import { workerRoutes } from "./routes/workers.ts";
import { waitingRoom } from "./waiting-room.ts";

/** The queue API. Opens nothing and keeps nothing. */
export function createApi(ports: ApiPorts): Api {
  const api = newRoutes();
  api.use(requestLog(ports.log));
  if (ports.metrics !== undefined) api.use(measure(ports.metrics.answered));
  api.use(
    secureHeaders({
      contentSecurityPolicy: {
        defaultSrc: ["'self'"],
        styleSrc: ["'self'", "'unsafe-inline'"],
        imgSrc: ["'self'", "data:"],
        objectSrc: ["'none'"],
        baseUri: ["'self'"],
        formAction: ["'self'"],
        frameAncestors: ["'self'"],
      },
      // Not "no-referrer": with it browsers send our own forms with `Origin: null`.
      referrerPolicy: "same-origin",
    }),
  );
  api.use(hostCheck(ports.hosts));
  api.use(async (context, next) => {
    await next();
    // Nobody reads it: what makes it must let go.
    if (context.req.method === "HEAD") await context.res.body?.cancel();
  });
  api.route("/", healthRoutes(ports));
  api.route(
    "/",
    docsRoutes(() => document(api, ports)),
  );

  if (ports.metrics !== undefined) api.route("/", metricsRoutes({ ...ports, ...ports.metrics }));

  const v1 = newRoutes();
  v1.use(authenticate(ports));
  v1.use(traced(ports.queues.tracing)); // not for everybody: who calls may say that a trace is kept
  v1.use(rateLimit(ports.limits.requests_per_second));
  v1.route("/", fileRoutes(ports)); // before the limit of all others
  v1.use(
    bodyLimit({
      maxSize: ports.limits.max_body_bytes,
      onError: () => {
        throw new ApiProblem(413, "body_too_large", `a request may have ${ports.limits.max_body_bytes} bytes`);
      },
    }),
  );
  v1.use(ownedOnly(ports));
  const room = waitingRoom(ports.limits.max_waiting, ports.stopping);
  v1.route("/", activationRoutes(ports));
  v1.route("/", manyRoutes(ports));
  v1.route("/", endRoutes(ports, room));
  v1.route("/", runListRoutes(ports));
  v1.route("/", runRoutes(ports, room));
  v1.route("/", storyRoutes(ports));
  v1.route("/", breakerRoutes(ports));
  v1.route("/", budgetRoutes(ports));
  v1.route("/", refusedRoutes(ports));
  v1.route("/", workerRoutes(ports));
  v1.route("/", artifactRoutes(ports));
  v1.route("/", resultRoutes(ports, room));
  v1.route("/", sealRoutes(ports));
  v1.route("/", webhookRoutes(ports));
  api.route("/v1", v1);
  api.route("/", pageRoutes(ports));

  api.openAPIRegistry.registerComponent("securitySchemes", "key", { type: "http", scheme: "bearer" });
  for (const [name, schema] of Object.entries(messageComponents())) api.openAPIRegistry.registerComponent("schemas", name, schema);
  api.notFound(answerUnknownRoute);
  api.onError((thrown, context) => answerThrown(thrown, context, ports.log));
  return api;
}

/** OpenAPI 3.1, from the same schemas that check requests. */
function document(api: Api, { version }: Pick<ApiPorts, "version">) {
  return api.getOpenAPI31Document({
    openapi: "3.1.0",
    info: { title: "Rollcall", version, description: "Session activations in, results out.", license: { name: "Apache-2.0" } },
    security: [{ key: [] }],
  });
}
