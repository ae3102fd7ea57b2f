// SPDX-License-Identifier: Apache-2.0
import { Hono } from "hono";
import { signedIn } from "./authenticate.ts";
import { rateLimit, type ApiEnv } from "./guards.ts";
import type { ApiPorts } from "./ports.ts";
import { webPages } from "./routes/web-pages.ts";
import { signInRoutes } from "./routes/sign-in.ts";

/** Where the pages are. Each pattern also stands for the path without its last part. */
const PAGES = ["/", "/runs/*", "/activations/*", "/dashboard/*"];

/** What people look at in a browser: all of it is for those who have signed in. */
export function pageRoutes(ports: ApiPorts): Hono<ApiEnv> {
  const routes = new Hono<ApiEnv>();
  routes.route("/", signInRoutes(ports));
  const guards = [signedIn(ports), rateLimit(ports.limits.requests_per_second)] as const;
  for (const path of PAGES) routes.use(path, ...guards);
  if (ports.web !== null) routes.route("/", webPages(ports, ports.web));
  return routes;
}
