// SPDX-License-Identifier: Apache-2.0
import { Hono, type Context } from "hono";
import { bodyLimit } from "hono/body-limit";
import { requestLog, type ApiEnv } from "../api/guards.ts";
import { traced } from "../api/measure.ts";
import { problemOf } from "../api/problem.ts";
import { waitingRoom } from "../api/waiting-room.ts";
import { activateSession } from "./activate.ts";
import { closeSession } from "./close.ts";
import { readSessionCookie, setSessionCookie } from "./cookie.ts";
import { endWaiter } from "./end-waiter.ts";
import { CAPABILITIES } from "./messages.ts";
import type { AgentServerPorts } from "./ports.ts";
import { conflict, GymProblem } from "./problem.ts";
import { seedSession } from "./seed.ts";
import { sessionStore } from "./session-store.ts";
import { hasMoreValues } from "../contract/count-values.ts";

/**
 * The agent-session protocol of NeMo Gym. It asks for no key, because its callers cannot send one: it belongs on an address of its
 * own. Opens one connection to Redis with the first request that waits, until `ports.stopping`.
 */
export function createAgentServer(ports: AgentServerPorts): Hono<ApiEnv> {
  const { keys, settings, log } = ports;
  const sessions = sessionStore(ports.queues, settings.session_hours * 3_600_000);
  const ends = endWaiter(ports);
  const waiting = waitingRoom(settings.max_waiting, ports.stopping);
  const app = new Hono<ApiEnv>();
  app.use(requestLog(log));
  app.use(async (context, next) => {
    // No caller of this protocol is a web page; without keys, any page could otherwise talk to it.
    if (context.req.header("origin") !== undefined) throw new GymProblem(403, "requests of web pages are not served here");
    await next();
  });
  app.use(
    bodyLimit({
      maxSize: settings.max_body_mb * 1_000_000,
      onError: () => {
        throw new GymProblem(413, `a request may have ${settings.max_body_mb} MB`);
      },
    }),
  );

  app.use(traced(ports.queues.tracing));
  app.get("/v1/agent_sessions/capabilities", (context) => context.json(CAPABILITIES));
  app.post("/v1/agent_sessions", async (context) => {
    const id = await seedSession(ports, sessions, await jsonOf(context), await readSessionCookie(context, keys));
    await setSessionCookie(context, id, keys);
    return context.json({ agent_session_id: id });
  });
  app.post("/v1/agent_sessions/close", async (context) =>
    context.json(await closeSession(ports, sessions, ends, await jsonOf(context), await readSessionCookie(context, keys))),
  );
  const activate = async (context: Context<ApiEnv>, routeKey: string | null): Promise<Response> => {
    const { signal: gone, leave } = waiting.enter(context.req.raw.signal);
    try {
      const cookie = await readSessionCookie(context, keys);
      return context.json(await activateSession(ports, sessions, ends, { raw: await jsonOf(context), cookie, routeKey, gone }));
    } finally {
      leave();
    }
  };
  app.post("/ng-rollout/:capture_key/v1/responses", (context) => activate(context, context.req.param("capture_key")));
  app.post("/v1/responses", (context) => activate(context, null));
  app.post("/run", async (context) => {
    const { kind } = await readSessionCookie(context, keys);
    if (kind === "none") throw new GymProblem(404, "this server runs agent sessions only");
    throw conflict("an agent session cannot be run by /run; its activation is at /ng-rollout/{capture_key}/v1/responses");
  });

  app.notFound((context) => context.json({ detail: `nothing is at ${context.req.method} ${context.req.path}` }, 404));
  app.onError((thrown, context) => {
    const { status, message } = asGymProblem(thrown);
    if (status >= 500) (context.var.log ?? log)[status === 500 ? "error" : "warn"]({ err: thrown }, "a request could not be served");
    return context.json({ detail: message }, status, status === 503 ? { "retry-after": "2" } : {});
  });
  return app;
}

/** Looking at each takes microseconds, and nobody else is served meanwhile. */
const MOST_VALUES = 100_000;

async function jsonOf(context: Context<ApiEnv>): Promise<unknown> {
  try {
    const json: unknown = await context.req.json();
    if (!hasMoreValues(json, MOST_VALUES)) return json;
    throw new GymProblem(413, `a request may have ${MOST_VALUES} values (fields and elements, at all depths)`);
  } catch (error) {
    if (error instanceof SyntaxError) throw new GymProblem(422, "the body is not JSON");
    throw error;
  }
}

function asGymProblem(thrown: unknown): GymProblem {
  if (thrown instanceof GymProblem) return thrown;
  const known = problemOf(thrown);
  if (known?.status === 503) return new GymProblem(503, known.message);
  return new GymProblem(500, "a fault of ours; the log of the server has more");
}
