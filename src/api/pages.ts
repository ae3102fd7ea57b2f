// SPDX-License-Identifier: Apache-2.0
import { Hono } from "hono";
import { BOARD_PATH, boardRoutes } from "../dashboard/board.ts";
import { signedIn } from "./authenticate.ts";
import { rateLimit, type ApiEnv } from "./guards.ts";
import { ofAllRuns } from "./owned.ts";
import type { ApiPorts } from "./ports.ts";
import { webPages } from "./routes/web-pages.ts";
import { signInRoutes } from "./routes/sign-in.ts";

/** Where the pages are. Each pattern also stands for the path without its last part. */
const PAGES = ["/", "/runs/*", "/activations/*", `${BOARD_PATH}/*`];

/** What people look at in a browser: all of it is for those who have signed in. */
export function pageRoutes(ports: ApiPorts): Hono<ApiEnv> {
  const routes = new Hono<ApiEnv>();
  routes.route("/", signInRoutes(ports));
  const guards = [signedIn(ports), rateLimit(ports.limits.requests_per_second)] as const;
  for (const path of PAGES) routes.use(path, ...guards);
  routes.use(`${BOARD_PATH}/*`, ofAllRuns);
  routes.get(`${BOARD_PATH}/`, (context) => context.redirect(BOARD_PATH));
  routes.route(BOARD_PATH, boardRoutes(ports));
  if (ports.web !== null) routes.route("/", webPages(ports, ports.web));
  return routes;
}
