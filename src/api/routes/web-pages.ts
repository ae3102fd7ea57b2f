// SPDX-License-Identifier: Apache-2.0
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { serveStatic } from "@hono/node-server/serve-static";
import { Hono } from "hono";
import { compress } from "hono/compress";
import { authenticate } from "../authenticate.ts";
import type { ApiEnv } from "../guards.ts";
import type { ApiPorts } from "../ports.ts";

/** Paths that the one page answers; what it shows comes from /v1. */
const PATHS = ["/", "/runs/:run_id", "/activations/:id"];

/**
 * The pages for people as `npm run build` made them in `directory`: the page itself is never kept by browsers (whoever mounts this sees
 * to that), its files, whose names change with their content, for ever. Without a build the paths are unknown.
 */
export function webPages(ports: ApiPorts, directory: string): Hono<ApiEnv> {
  const routes = new Hono<ApiEnv>();
  for (const path of PATHS) {
    routes.get(path, async (context) => {
      const text = await readFile(join(directory, "index.html"), "utf8").catch(() => null); // each time: it may be built anew
      return text === null ? context.notFound() : context.html(text);
    });
  }
  routes.use("/assets/*", authenticate(ports), compress(), async (context, next) => {
    await next();
    if (context.res.ok) context.header("cache-control", "private, max-age=31536000, immutable");
  });
  routes.use("/assets/*", serveStatic({ root: directory }));
  return routes;
}
