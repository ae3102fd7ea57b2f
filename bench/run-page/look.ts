// SPDX-License-Identifier: Apache-2.0
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { openBrowser } from "../../test/support/browser.ts";

const WAIT_MS = 120_000;

/** Opens the run's page as a person does, and says how long things took. `shots`: a directory for screenshots. */
export async function lookAtPage({
  origin,
  key,
  runId,
  shots,
}: {
  origin: string;
  key: string;
  runId: string;
  shots: string | null;
}): Promise<Record<string, string>> {
  const browser = await openBrowser();
  try {
    if (shots !== null) await mkdir(shots, { recursive: true });
    const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
    const shot = async (name: string, fullPage = true): Promise<void> => {
      if (shots !== null) await page.screenshot({ path: join(shots, `${name}.png`), fullPage });
    };
    await page.goto(`${origin}/runs/${runId}`);
    await page.getByLabel("API key").fill(key);
    const since = performance.now();
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("heading", { name: runId }).waitFor({ timeout: WAIT_MS });
    const head = performance.now() - since;
    await page.locator("#activations tbody tr").first().waitFor({ timeout: WAIT_MS });
    const table = performance.now() - since;
    await page.locator("figure canvas").nth(3).waitFor({ timeout: WAIT_MS });
    const charts = performance.now() - since;
    await shot("many-light");
    const typed = performance.now();
    await page.getByLabel("Find").fill("0777");
    const others = page.locator("#activations tbody tr").filter({ hasNotText: "0777" });
    await others.first().waitFor({ state: "detached", timeout: WAIT_MS });
    const filtered = performance.now() - typed;
    await page.getByRole("button", { name: "Show all" }).click();
    await page.getByRole("button", { name: /^Theme/ }).click();
    await shot("many-dark");
    const memory = await page.evaluate(() => (performance as unknown as { memory: { usedJSHeapSize: number } }).memory.usedJSHeapSize);
    await page.setViewportSize({ width: 360, height: 740 });
    await shot("many-phone");
    const overflow = await page.evaluate<number>("document.documentElement.scrollWidth - document.documentElement.clientWidth");
    return {
      "page: from the sign-in to its head, ms": head.toFixed(0),
      "page: to the first rows of the table, ms": table.toFixed(0),
      "page: to the last chart, ms": charts.toFixed(0),
      "page: from a word typed to its rows, ms": filtered.toFixed(0),
      "page: memory of its scripts, MB": (memory / 1_000_000).toFixed(0),
      "page: wider than a phone by, px": String(overflow),
    };
  } finally {
    await browser.close();
  }
}
