// SPDX-License-Identifier: Apache-2.0
import { existsSync } from "node:fs";
import { chromium, type Browser } from "playwright-core";

const PLACES = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

/** Headless Chromium of the system. The caller closes it. Throws, saying how to install one, when there is none. */
export async function openBrowser(): Promise<Browser> {
  const executablePath = PLACES.find((place) => existsSync(place));
  if (executablePath === undefined)
    throw new Error(
      `no Chromium at ${PLACES.join(", ")}: bash scripts/setup.sh --tests installs one (Debian: apt-get install chromium fonts-dejavu-core)`,
    );
  // No sandbox of its own: tests run as root, and open no page but ours. Nothing of it asks a host outside.
  const quiet = ["--no-sandbox", "--disable-background-networking", "--disable-component-update", "--no-first-run", "--disable-sync"];
  return chromium.launch({ executablePath, headless: true, args: quiet });
}
