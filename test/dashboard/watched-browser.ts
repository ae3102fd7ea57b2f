// SPDX-License-Identifier: Apache-2.0
import { onTestFinished } from "vitest";
import type { BrowserContext, Page } from "playwright-core";
import { openBrowser } from "../support/browser.ts";

/** What a browser did, as far as it must not. */
export interface Watched {
  context: BrowserContext;
  page: Page;
  /** Of each request that left loopback, which none got through. */
  outside: string[];
  /** Console errors, errors of scripts, dialogs that opened. */
  errors: string[];
  /** Bodies of all answers, so far. */
  bodies(): Promise<string[]>;
  /** What was sent: shows that a search finds what is there. */
  sent: string[];
}

const STREAMS = /event-stream/;

/** Headless Chromium with an eye on all that it asks for, gets and complains of. It ends with the test. */
export async function watchedBrowser(): Promise<Watched> {
  const browser = await openBrowser();
  onTestFinished(() => browser.close());
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, colorScheme: "light" });
  const [outside, errors, sent, reading]: [string[], string[], string[], Promise<string>[]] = [[], [], [], []];
  await context.route("**/*", async (route) => {
    const { hostname, protocol } = new URL(route.request().url());
    if (hostname === "127.0.0.1" || protocol === "data:") return route.continue();
    outside.push(route.request().url());
    return route.abort();
  });
  context.on("request", (request) => sent.push(`${request.url()} ${request.postData() ?? ""}`));
  context.on("response", (response) => {
    // A stream is over when the page is; what is in it is looked at by itself.
    if (!STREAMS.test(response.headers()["content-type"] ?? "")) reading.push(response.text().catch(() => ""));
  });
  context.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") errors.push(`console: ${message.text()}`);
  });
  context.on("weberror", (error) => errors.push(`error: ${error.error().message}`));
  context.on("dialog", (dialog) => {
    errors.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  return { context, page: await context.newPage(), outside, errors, sent, bodies: () => Promise.all(reading) };
}

/** Presses Tab until the focused element is the wanted one; answers how often. Throws when it does not come. */
export async function tabTo(page: Page, what: { role?: string; name: string | RegExp }, most = 80): Promise<number> {
  for (let count = 1; count <= most; count++) {
    await page.keyboard.press("Tab");
    const name = await page.evaluate<string>(
      "(document.activeElement.getAttribute('aria-label') ?? document.activeElement.innerText ?? document.activeElement.value ?? '').trim()",
    );
    if (typeof what.name === "string" ? name === what.name : what.name.test(name)) return count;
  }
  throw new Error(`Tab did not come to ${String(what.name)} within ${most} presses`);
}

/** px by which the page is wider than its window. */
export function overflowOf(page: Page): Promise<number> {
  return page.evaluate<number>("document.documentElement.scrollWidth - document.documentElement.clientWidth");
}
