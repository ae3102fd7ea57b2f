// SPDX-License-Identifier: Apache-2.0
import { readdirSync, readFileSync } from "node:fs";

/** Command lines of live processes, but for this one, whose command line or environment holds `text`. */
export function processesNaming(text: string): string[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && name !== String(process.pid))
    .flatMap((pid) => {
      try {
        const words = readFileSync(`/proc/${pid}/cmdline`, "utf8") + readFileSync(`/proc/${pid}/environ`, "utf8");
        return words.includes(text) ? [words.replaceAll("\0", " ").slice(0, 200)] : [];
      } catch {
        return []; // ended meanwhile
      }
    });
}
