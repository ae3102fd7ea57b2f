// SPDX-License-Identifier: Apache-2.0
import { createMiddleware } from "hono/factory";

/** Tags of a page that name another host: Bull Board 9.10.1 asks Google for its fonts. */
const OUTSIDE = /<(?:link|script|img)\b[^>]*\b(?:href|src)="(?:https?:)?\/\/[^>]*>(?:<\/script>)?/gi;

/** Takes out of HTML what would ask another host. The content security policy refuses it as well; this way no browser complains. */
export function withoutOutside() {
  return createMiddleware(async (context, next) => {
    await next();
    if (!(context.res.headers.get("content-type") ?? "").startsWith("text/html")) return;
    const page = (await context.res.text()).replace(OUTSIDE, "");
    context.res = new Response(page, context.res);
  });
}
