// SPDX-License-Identifier: Apache-2.0
import { join } from "node:path";
import { writeFileSync } from "node:fs";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openEvidence } from "../../src/artifacts/open-evidence.ts";
import { gatherRun } from "../../src/report/gather.ts";
import { reportPage } from "../../src/report/page.ts";
import { openBrowser } from "../support/browser.ts";
import { tempDir } from "../support/temp-dir.ts";
import { openReportFile, type OpenedReport } from "./open-report.ts";
import { hostileRun, madeResult, writeRun } from "./results-of.ts";

let browser: Browser;
beforeAll(async () => {
  browser = await openBrowser();
});
afterAll(() => browser.close());

async function openReport(width: number, colorScheme: "light" | "dark"): Promise<OpenedReport> {
  const out = tempDir();
  await writeRun(out, hostileRun().map(madeResult));
  const path = join(out, "report.html");
  writeFileSync(path, await reportPage(await gatherRun(out, { partial: false, passThreshold: 1, openEvidence })));
  return openReportFile(browser, path, { viewport: { width, height: 800 }, colorScheme });
}

describe("the report in a browser, from a file", () => {
  it.each([
    [1280, "light"],
    [360, "dark"],
  ] as const)("fits %i pixels, in %s colours, asks for nothing and has no error", async (width, scheme) => {
    const { page, wrong } = await openReport(width, scheme);
    const size = await page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]");
    expect(size).toEqual([width, width]);
    const background = await page.evaluate("getComputedStyle(document.body).backgroundColor");
    expect(background).toBe(scheme === "light" ? "rgb(255, 255, 255)" : "rgb(20, 23, 26)");
    expect(await page.title()).toBe("Run run-1");
    expect(await page.locator("figure svg:visible").count()).toBe(5);
    // All text of the charts has the colour of the page's, so they can be read in both.
    const inks = await page.evaluate(
      "[...new Set([...document.querySelectorAll('figure svg text')].map((text) => getComputedStyle(text).fill))]",
    );
    expect(inks).toEqual([scheme === "light" ? "rgb(28, 32, 36)" : "rgb(230, 233, 237)"]);
    expect(wrong).toEqual([]);
    await page.close();
  });

  it("filters and sorts the rollouts with the keyboard alone", async () => {
    const { page, wrong } = await openReport(1280, "light");
    const rows = page.locator("#rollouts tbody tr:visible");
    await expect.poll(() => rows.count()).toBe(hostileRun().length);
    await page.keyboard.press("Tab");
    expect(await page.evaluate("document.activeElement.textContent")).toBe("To the rollouts");
    await page.keyboard.press("Enter");
    await page.keyboard.press("Tab");
    await page.keyboard.type("sandbox_failed");
    await expect.poll(() => rows.count()).toBe(1);
    expect(await page.locator("#shown").textContent()).toBe(`1 of ${hostileRun().length} shown`);
    for (let back = 0; back < "sandbox_failed".length; back++) await page.keyboard.press("Backspace");
    await page.locator("#rollouts th button", { hasText: "Reward" }).focus();
    await page.keyboard.press("Enter");
    await page.keyboard.press("Enter");
    expect(await page.locator("#rollouts th", { hasText: "Reward" }).getAttribute("aria-sort")).toBe("descending");
    expect(await rows.first().locator("td").nth(4).textContent()).toBe("1");
    expect(wrong).toEqual([]);
    await page.close();
  });
});
