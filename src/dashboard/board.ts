// SPDX-License-Identifier: Apache-2.0
import { createBullBoard } from "@bull-board/api";
import type { ControllerHandlerReturnType } from "@bull-board/api/typings/app";
import { HonoAdapter } from "@bull-board/hono";
import { serveStatic } from "@hono/node-server/serve-static";
import { Hono } from "hono";
import { requireScope, type ApiEnv } from "../api/guards.ts";
import type { ApiPorts } from "../api/ports.ts";
import { ApiProblem } from "../api/problem.ts";
import { withoutOutside } from "./without-outside.ts";
import { shownQueues } from "./shown-queues.ts";

/** Where it is mounted. */
export const BOARD_PATH = "/dashboard";

const FONTS = { "font-sans": "system-ui, sans-serif", "font-mono": "ui-monospace, monospace" };

/** The names of its files change with what is in them. */
const STATIC_CACHE = "private, max-age=86400";

/**
 * Bull Board, to look at only: whoever may read sees the queues, and nobody changes anything through it, because what it offers
 * would bypass the ledger (docs/dashboard.md says it of each). For those who have signed in: the caller guards it.
 */
export function boardRoutes(ports: ApiPorts): Hono<ApiEnv> {
  const shown = shownQueues(ports);
  const adapter = new BoardAdapter(serveStatic).setBasePath(BOARD_PATH);
  const { replaceQueues } = createBullBoard({
    queues: shown.first,
    serverAdapter: adapter,
    options: {
      uiConfig: {
        boardTitle: "Rollcall",
        hideDocsLink: true,
        hideRedisDetails: true,
        jobDetails: { defaultTab: "Data" },
        miscLinks: [
          { text: "Runs", url: "/" },
          { text: "API", url: "/docs" },
          { text: "Sign out", url: "/sign-out" },
        ],
        theme: { light: FONTS, dark: FONTS },
      },
    },
  });

  const routes = new Hono<ApiEnv>();
  routes.use(requireScope("read"));
  routes.use(async ({ req: { method, path } }, next) => {
    if (method !== "GET" && method !== "HEAD") throw onlyToLookAt(method, path);
    await next();
  });
  routes.get("/api/redis/*", () => {
    throw new ApiProblem(403, "not_shown", "what Redis says of itself is not shown here; /readyz says whether it is usable");
  });
  routes.use("/api/queues", async (_, next) => {
    await shown.refresh(replaceQueues);
    await next();
  });
  routes.use("/static/*", async (context, next) => {
    await next();
    if (context.res.ok) context.header("cache-control", STATIC_CACHE);
  });
  routes.use(withoutOutside());
  routes.route("/", adapter.app());
  return routes;
}

/** Bull Board answers what its handlers throw with 500 and the words of it; ours go where all problems of the API go. */
class BoardAdapter extends HonoAdapter {
  override setErrorHandler(_handler: (error: Error) => ControllerHandlerReturnType): this {
    return super.setErrorHandler(thrown);
  }

  app() {
    return this.registerPlugin().onError(thrown); // its hono is the CommonJS one, which would answer itself
  }
}

function thrown(error: Error): never {
  throw error;
}

function onlyToLookAt(method: string, path: string): ApiProblem {
  return new ApiProblem(
    405,
    "only_to_look_at",
    `the dashboard changes nothing (${method} ${path}): cancel, retry, pause and resume from the page of the activation or its run, by /v1, or by the commands of the same names`,
    { headers: { allow: "GET, HEAD" } },
  );
}
