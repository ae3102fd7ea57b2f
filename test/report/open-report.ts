// SPDX-License-Identifier: Apache-2.0
import { pathToFileURL } from "node:url";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";

export interface OpenedReport {
  page: Page;
  /** Console errors, page errors and requests other than for the page itself. */
  wrong: string[];
}

/** Opens a report as a user does, from its file. The caller closes the page. */
export async function openReportFile(
  browser: Browser,
  path: string,
  look: Pick<BrowserContextOptions, "viewport" | "colorScheme">,
): Promise<OpenedReport> {
  const page = await browser.newPage(look);
  const wrong: string[] = [];
  page.on("console", (message) => wrong.push(`console: ${message.text()}`));
  page.on("pageerror", (error) => wrong.push(`error: ${error.message}`));
  page.on("request", (request) => {
    if (request.url() !== pathToFileURL(path).href) wrong.push(`request: ${request.url()}`);
  });
  await page.goto(pathToFileURL(path).href);
  return { page, wrong };
}
