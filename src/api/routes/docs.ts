// SPDX-License-Identifier: Apache-2.0
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { readFile } from "node:fs/promises";
import { newRoutes, type Api } from "../new-routes.ts";

const FILES: Record<string, string> = {
  "swagger-ui.css": "text/css; charset=utf-8",
  "swagger-ui-bundle.js": "text/javascript; charset=utf-8",
};

const PAGE = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>Rollcall API</title>
<link rel="stylesheet" href="/docs/swagger-ui.css"></head>
<body><div id="docs"></div><script src="/docs/swagger-ui-bundle.js"></script><script src="/docs/start.js"></script></body></html>
`;
const START = `SwaggerUIBundle({ url: "/openapi.json", dom_id: "#docs", validatorUrl: null });\n`;

/** The document, and a page that shows it; everything comes from this server. */
export function docsRoutes(document: () => object): Api {
  const routes = newRoutes();
  const directory = dirname(createRequire(import.meta.url).resolve("swagger-ui-dist/package.json"));
  routes.get("/openapi.json", (context) => context.json(document()));
  routes.get("/docs", (context) => context.html(PAGE));
  routes.get("/docs/start.js", (context) => context.body(START, 200, { "content-type": "text/javascript; charset=utf-8" }));
  for (const [name, type] of Object.entries(FILES)) {
    routes.get(`/docs/${name}`, async (context) =>
      context.body(await readFile(join(directory, name), "utf8"), 200, { "content-type": type }),
    );
  }
  return routes;
}
