// SPDX-License-Identifier: Apache-2.0
import { getConnInfo } from "@hono/node-server/conninfo";
import { Hono, type Context } from "hono";
import { bodyLimit } from "hono/body-limit";
import { RateLimiterMemory } from "rate-limiter-flexible";
import { requireSameOrigin } from "../authenticate.ts";
import type { ApiEnv } from "../guards.ts";
import { nextPath } from "../next-path.ts";
import type { ApiPorts } from "../ports.ts";
import { ApiProblem } from "../problem.ts";
import { endSignIn, setSignIn, signedInCaller } from "../sign-in-cookie.ts";
import { AGAIN_SCRIPT, signInPage, signOutPage } from "../sign-in-page.ts";

const MAX_BODY_BYTES = 8_192;
/** Keys that are known to nobody, from one address in one process. */
const WRONG_KEYS = { points: 10, duration: 60 };

/** How a browser comes to be known: a form for a key, which becomes a cookie. */
export function signInRoutes(ports: ApiPorts): Hono<ApiEnv> {
  const routes = new Hono<ApiEnv>();
  const wrongKeys = new RateLimiterMemory(WRONG_KEYS);
  const show = async (context: Context<ApiEnv>, next: string, problem: string | null, status: 200 | 401 | 429 = 200) => {
    context.header("cache-control", "no-store");
    return context.html(await signInPage({ next, problem }), status);
  };

  routes.get("/sign-in", async (context) => {
    const next = nextPath(context.req.query("next"));
    if ((await signedInCaller(context, ports)) !== null) return context.redirect(next);
    return show(context, next, null);
  });

  // A link on another site brings no cookie along, but a page of ours that was opened by it does.
  routes.get("/sign-in/again.js", (context) => context.body(AGAIN_SCRIPT, 200, { "content-type": "text/javascript; charset=utf-8" }));
  routes.get("/sign-in/state", async (context) => {
    context.header("cache-control", "no-store");
    return context.json({ signed_in: (await signedInCaller(context, ports)) !== null });
  });

  routes.post("/sign-in", bodyLimit({ maxSize: MAX_BODY_BYTES, onError: tooLarge }), async (context) => {
    requireSameOrigin(context);
    const { key, next: asked } = await context.req.parseBody();
    const next = nextPath(typeof asked === "string" ? asked : undefined);
    const address = addressOf(context);
    const guesses = await wrongKeys.get(address);
    if (guesses !== null && guesses.remainingPoints <= 0) {
      context.header("retry-after", String(Math.ceil(guesses.msBeforeNext / 1_000)));
      return show(context, next, "Too many keys that nobody has. Wait a minute.", 429);
    }
    const given = typeof key === "string" ? key.trim() : "";
    const caller = await ports.apiKeys.find(given);
    if (caller === null) {
      await wrongKeys.penalty(address);
      context.var.log.warn({ address }, "somebody tried to sign in with a key that nobody has");
      return show(context, next, "This deployment knows no such key.", 401);
    }
    context.set("caller", caller); // for the log
    await setSignIn(context, given, ports);
    return context.redirect(next, 303);
  });

  routes.get("/sign-out", async (context) => {
    context.header("cache-control", "no-store");
    return context.html(await signOutPage());
  });
  routes.post("/sign-out", (context) => {
    requireSameOrigin(context);
    endSignIn(context);
    return context.redirect("/sign-in", 303);
  });
  return routes;
}

function tooLarge(): never {
  throw new ApiProblem(413, "body_too_large", `a form to sign in may have ${MAX_BODY_BYTES} bytes`);
}

/** Of whoever is connected: behind a proxy all have one. */
function addressOf(context: Context): string {
  return getConnInfo(context).remote.address ?? "unknown";
}
