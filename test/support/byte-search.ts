// SPDX-License-Identifier: Apache-2.0
import { lstatSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** Files below `root` whose bytes hold `text` as it is, or as it stands inside JSON; relative paths. Names count, too. */
export function filesHolding(root: string, text: string): string[] {
  const forms = [...new Set([text, JSON.stringify(text).slice(1, -1)])].map((form) => Buffer.from(form));
  return readdirSync(root, { recursive: true, encoding: "utf8" })
    .filter((path) => {
      if (forms.some((form) => path.includes(form.toString()))) return true;
      const file = join(root, path);
      if (!lstatSync(file).isFile()) return false;
      const bytes = readFileSync(file);
      return forms.some((form) => bytes.includes(form));
    })
    .sort();
}

/** Command lines of all processes of this machine that hold `text`. */
export function commandLinesHolding(text: string): string[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        const words = readFileSync(`/proc/${pid}/cmdline`, "utf8");
        return words.includes(text) ? [`${pid}: ${words.replaceAll("\0", " ").slice(0, 200)}`] : [];
      } catch {
        return []; // ended meanwhile
      }
    });
}
