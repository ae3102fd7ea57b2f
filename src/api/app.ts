// SPDX-License-Identifier: Apache-2.0
import { bodyLimit } from "hono/body-limit";
import { secureHeaders } from "hono/secure-headers";
import type { Context } from "hono";
import { authenticate } from "./authenticate.ts";
import { messageComponents } from "./components.ts";
import { hostCheck, rateLimit, requestLog, type ApiEnv } from "./guards.ts";
import { newRoutes, type Api } from "./new-routes.ts";
import { pageRoutes } from "./pages.ts";
import type { ApiPorts } from "./ports.ts";
import { ApiProblem, problemOf, PROBLEM_TYPE, type Problem } from "./problem.ts";
import { artifactRoutes } from "./routes/artifacts.ts";
import { activationRoutes } from "./routes/activations.ts";
import { breakerRoutes } from "./routes/breaker.ts";
import { endRoutes } from "./routes/ends.ts";
import { docsRoutes } from "./routes/docs.ts";
import { healthRoutes } from "./routes/health.ts";
import { manyRoutes } from "./routes/many.ts";
import { sealRoutes } from "./routes/seal.ts";
import { fileRoutes } from "./routes/files.ts";
import { resultRoutes } from "./routes/results.ts";
import { runListRoutes } from "./routes/run-list.ts";
import { runRoutes } from "./routes/runs.ts";
import { storyRoutes } from "./routes/story.ts";
import { workerRoutes } from "./routes/workers.ts";
import { waitingRoom } from "./waiting-room.ts";

/** The queue API. Opens nothing and keeps nothing. */
export function createApi(ports: ApiPorts): Api {
  const api = newRoutes();
  api.use(requestLog(ports.log));
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

  const v1 = newRoutes();
  v1.use(authenticate(ports));
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
  const room = waitingRoom(ports.limits.max_waiting, ports.stopping);
  v1.route("/", activationRoutes(ports));
  v1.route("/", manyRoutes(ports));
  v1.route("/", endRoutes(ports, room));
  v1.route("/", runListRoutes(ports));
  v1.route("/", runRoutes(ports, room));
  v1.route("/", storyRoutes(ports));
  v1.route("/", breakerRoutes(ports));
  v1.route("/", workerRoutes(ports));
  v1.route("/", artifactRoutes(ports));
  v1.route("/", resultRoutes(ports, room));
  v1.route("/", sealRoutes(ports));
  api.route("/v1", v1);
  api.route("/", pageRoutes(ports));

  api.openAPIRegistry.registerComponent("securitySchemes", "key", { type: "http", scheme: "bearer" });
  for (const [name, schema] of Object.entries(messageComponents())) api.openAPIRegistry.registerComponent("schemas", name, schema);
  api.notFound((context) =>
    answer(context, new ApiProblem(404, "route_unknown", `nothing is at ${context.req.method} ${context.req.path}`)),
  );
  api.onError((thrown, context) => {
    const problem = problemOf(thrown);
    if (problem !== null) {
      if (problem.status >= 500) log(context).warn({ err: problem.cause ?? problem, code: problem.code }, "a request could not be served");
      return answer(context, problem);
    }
    log(context).error({ err: thrown }, "a request met a fault of ours");
    return answer(context, new ApiProblem(500, "internal", "a fault of ours; the log of the server has more under this request id"));
  });
  return api;

  function log(context: Context<ApiEnv>) {
    return context.var.log ?? ports.log;
  }
}

/** OpenAPI 3.1, from the same schemas that check requests. */
function document(api: Api, { version }: Pick<ApiPorts, "version">) {
  return api.getOpenAPI31Document({
    openapi: "3.1.0",
    info: { title: "Rollcall", version, description: "Session activations in, results out.", license: { name: "Apache-2.0" } },
    security: [{ key: [] }],
  });
}

function answer(context: Context<ApiEnv>, { status, code, message, errors, headers }: ApiProblem): Response {
  const body: Problem = {
    type: `urn:rollcall:problem:${code}`,
    title: code.replaceAll("_", " "),
    status,
    code,
    detail: message,
    ...(context.var.request_id === undefined ? {} : { request_id: context.var.request_id }),
    ...(errors === undefined ? {} : { errors }),
  };
  return context.body(JSON.stringify(body), status, { ...headers, "content-type": PROBLEM_TYPE });
}
