// SPDX-License-Identifier: Apache-2.0
import type { Context } from "hono";
import type { Logger } from "pino";
import type { ApiEnv } from "./guards.ts";
import { ApiProblem, problemOf, PROBLEM_TYPE, type Problem } from "./problem.ts";

/** Whatever a handler threw, as an answer; a fault of ours is logged, and told without its words. */
export function answerThrown(thrown: unknown, context: Context<ApiEnv>, fallback: Logger): Response {
  const log = context.var.log ?? fallback;
  const problem = problemOf(thrown);
  if (problem !== null) {
    if (problem.status >= 500) log.warn({ err: problem.cause ?? problem, code: problem.code }, "a request could not be served");
    return answerProblem(context, problem);
  }
  log.error({ err: thrown }, "a request met a fault of ours");
  return answerProblem(context, new ApiProblem(500, "internal", "a fault of ours; the log of the server has more under this request id"));
}

/** For a path that nothing is at. */
export function answerUnknownRoute(context: Context<ApiEnv>): Response {
  return answerProblem(context, new ApiProblem(404, "route_unknown", `nothing is at ${context.req.method} ${context.req.path}`));
}

function answerProblem(context: Context<ApiEnv>, { status, code, message, errors, headers }: ApiProblem): Response {
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
