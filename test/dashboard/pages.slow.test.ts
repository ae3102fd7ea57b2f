// SPDX-License-Identifier: Apache-2.0
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import type { Page } from "playwright-core";
import { HOSTILE, RUN, startLiveRun, untilEnded } from "./live-run.ts";
import { overflowOf, tabTo, watchedBrowser } from "./watched-browser.ts";

const WAIT = { timeout: 60_000 };
/** Set to keep what the pages looked like: docs/ shows some of it. */
const SHOTS = process.env["ROLLCALL_SHOTS"];

async function shot(page: Page, name: string): Promise<void> {
  if (SHOTS === undefined) return;
  mkdirSync(SHOTS, { recursive: true });
  await page.screenshot({ path: join(SHOTS, `${name}.png`) });
}

const focusRing =
  "(() => { const { outlineStyle, outlineWidth } = getComputedStyle(document.activeElement); return `${outlineStyle} ${outlineWidth}`; })()";

it("from the sign-in to the cause of a failed activation in three clicks; all pages by keyboard, on a phone, in both themes; a session is followed as it runs, and cancelled; nothing leaves loopback, no secret is shown, no error is made [C7]", async () => {
  const [live, browser] = await Promise.all([startLiveRun(), watchedBrowser()]);
  const { page, errors } = browser;

  // Signing in, by keyboard.
  await page.goto(`${live.origin}/`);
  expect(new URL(page.url()).pathname).toBe("/sign-in");
  await page.keyboard.type(live.key);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Runs" }).waitFor(WAIT);
  await untilEnded(live, 3);

  // Three clicks at most: the run, the example, and the cause is there.
  await page.getByRole("link", { name: RUN }).click();
  await page.getByRole("heading", { name: RUN }).waitFor(WAIT);
  const failures = page.getByRole("region", { name: "Failures by cause" });
  await failures.getByText("mcp_server_unreachable").waitFor(WAIT);
  await page.locator("#activations tbody tr").nth(3).waitFor(WAIT);
  await page.locator("figure canvas").nth(3).waitFor(WAIT);
  await shot(page, "run-light");
  await failures.getByRole("link", { name: "broken-1" }).click();
  const why = page.getByRole("region", { name: "Why it ended" });
  await why.getByText("mcp_server_unreachable").waitFor(WAIT);
  expect(await why.innerText()).toMatch(/of office/);
  expect(await page.getByRole("region", { name: "Attempt 0" }).innerText()).toMatch(/office\s+unavailable\s+required/);
  await shot(page, "activation-failed");

  // What others named is text, whatever it says.
  await page.goto(`${live.origin}/activations/ok-2`);
  await page
    .getByText(`office/${HOSTILE.replace("\u202E", "\\u202e")}`)
    .first()
    .waitFor(WAIT);
  expect(await page.locator("main img").count()).toBe(0);
  await page.getByText("The report is written.").waitFor(WAIT);
  await page.getByRole("button", { name: "Show outputs/report.txt" }).click();
  await page.getByLabel("outputs/report.txt", { exact: true }).getByText("a report").waitFor(WAIT);
  await shot(page, "activation-completed");

  // By keyboard alone: into the run, holding it and letting it go, sorting, and one row's page.
  await page.goto(`${live.origin}/`);
  await page.getByRole("link", { name: RUN }).waitFor(WAIT);
  expect(await tabTo(page, { name: "Skip to the content" })).toBe(1);
  await tabTo(page, { name: RUN });
  expect(await page.evaluate(focusRing)).toBe("solid 2px");
  await page.keyboard.press("Enter");
  await page.locator("#activations tbody tr").nth(3).waitFor(WAIT);
  await tabTo(page, { name: "Pause" });
  await page.keyboard.press("Enter");
  await page.getByText(/^Paused by default .*on its page/).waitFor(WAIT);
  await page.getByRole("button", { name: "Resume" }).focus();
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Pause", exact: true }).waitFor(WAIT);
  await page.getByLabel("Find").focus();
  await page.keyboard.type("o");
  await tabTo(page, { name: /^Tokens/ });
  await page.keyboard.press("Enter");
  await expect.poll(() => new URL(page.url()).search, WAIT).toBe("?q=o&sort=-tokens");
  expect(await page.getByRole("columnheader", { name: "Tokens" }).getAttribute("aria-sort")).toBe("descending");
  await tabTo(page, { name: "ok-1" });
  await page.goBack(); // the filter changes the address in place
  await page.goForward();
  expect(await page.getByLabel("Find").inputValue()).toBe("o");
  await page.locator("#activations tbody tr").nth(3).waitFor(WAIT);
  await page.getByLabel("Outcome", { exact: true }).selectOption("failed");
  await expect.poll(() => page.locator("#activations tbody tr").count(), WAIT).toBe(1);

  // The queues, by the link at the top.
  await page.getByRole("link", { name: "Queues" }).click();
  await page
    .getByRole("link", { name: /activations/i })
    .first()
    .click();
  await page.getByText("long-1").first().waitFor(WAIT);
  await shot(page, "queues");

  // A session that runs: its page changes by itself, and says so when it is cancelled from there.
  await page.goto(`${live.origin}/activations/long-1`);
  const events = page.getByRole("list", { name: /^Events/ }).getByRole("listitem");
  await events.first().waitFor(WAIT);
  const before = await events.count();
  await expect.poll(() => events.count(), WAIT).toBeGreaterThan(before + 1);
  await shot(page, "activation-live");
  const stream = await page.evaluate<string>(
    "fetch('/v1/activations/long-1/events', { signal: AbortSignal.timeout(500) }).then(async ({ body }) => new TextDecoder().decode((await body.getReader().read()).value))",
  );
  expect(stream).toContain(": events");

  // Every page on a phone, and in the other theme.
  await page.setViewportSize({ width: 360, height: 740 });
  for (const path of ["/", `/runs/${RUN}`, "/activations/ok-2", "/activations/broken-1", "/activations/long-1"]) {
    await page.goto(live.origin + path);
    await page.locator("main .card").first().waitFor(WAIT);
    if (path.startsWith("/runs")) await page.locator("#activations tbody tr").nth(3).waitFor(WAIT);
    expect([path, await overflowOf(page)]).toEqual([path, 0]);
    if (path.startsWith("/runs")) await shot(page, "run-phone");
  }
  const ground = (): Promise<string> => page.evaluate<string>("getComputedStyle(document.documentElement).backgroundColor");
  const lightGround = await ground();
  await page.getByRole("button", { name: /^Theme: light/ }).click();
  await expect.poll(ground, WAIT).not.toBe(lightGround);
  await page.setViewportSize({ width: 1280, height: 900 });
  await page.goto(`${live.origin}/runs/${RUN}`);
  await page.locator("figure canvas").nth(3).waitFor(WAIT);
  expect(await page.evaluate("document.documentElement.dataset.theme")).toBe("dark"); // kept
  await shot(page, "run-dark");

  // Cancelling, which asks first.
  await page.goto(`${live.origin}/activations/long-1`);
  await page.getByRole("button", { name: "Cancel it…" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Cancel it" }).click();
  await page.getByRole("heading", { name: "Why it ended" }).waitFor(WAIT);
  await page.getByText("cancelled by default").first().waitFor(WAIT);

  // What must not be anywhere.
  const dom = await page.content();
  const storage = await page.evaluate<string>("JSON.stringify([{ ...localStorage }, { ...sessionStorage }])");
  expect(storage).toBe('[{"rollcall-theme":"dark"},{}]');
  const cookies = await browser.context.cookies();
  expect(cookies).toMatchObject([{ httpOnly: true, sameSite: "Strict" }]);
  const bodies = await browser.bodies();
  expect(bodies.some((body) => body.includes("mcp_server_unreachable"))).toBe(true);
  expect(browser.sent.some((request) => request.includes(encodeURIComponent(live.key)))).toBe(true); // it would be found
  for (const secret of [...live.secrets, ...cookies.map(({ value }) => value)])
    for (const text of [dom, storage, stream, ...bodies]) expect(text.includes(secret)).toBe(false);
  expect(browser.outside).toEqual([]);
  expect(errors).toEqual([]);

  // Of what is not there a page says so; the browser complains of the answer by itself.
  await page.goto(`${live.origin}/runs/none`);
  await page.getByRole("heading", { name: "No such run" }).waitFor(WAIT);
});
