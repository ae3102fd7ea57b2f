// SPDX-License-Identifier: Apache-2.0
import { chromium, type Browser } from "playwright-core";
import { findOnPath } from "../../src/redis/binary.ts";

const NAMES = ["chromium", "chromium-browser", "google-chrome"];

/** Headless Chromium of the system. The caller closes it. Throws, saying how to install one, when there is none. */
export async function openBrowser(): Promise<Browser> {
  const executablePath = await findOnPath(NAMES, process.env["PATH"] ?? "");
  if (executablePath === null)
    throw new Error(
      `none of ${NAMES.join(", ")} is on PATH: bash scripts/setup.sh --tests installs one (Debian: apt-get install chromium fonts-dejavu-core)`,
    );
  // No sandbox of its own: tests run as root, and open no page but ours. Nothing of it asks a host outside.
  const quiet = ["--no-sandbox", "--disable-background-networking", "--disable-component-update", "--no-first-run", "--disable-sync"];
  return chromium.launch({ executablePath, headless: true, args: quiet });
}
