// SPDX-License-Identifier: Apache-2.0
import { lstatSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { hasErrno } from "../../src/errors.ts";

/** Files below `root` whose bytes hold `text` as it is, or as it stands inside JSON; relative paths. Names count, too. */
export function filesHolding(root: string, text: string): string[] {
  const forms = [...new Set([text, JSON.stringify(text).slice(1, -1)])].map((form) => Buffer.from(form));
  return readdirSync(root, { recursive: true, encoding: "utf8" })
    .filter((path) => {
      if (forms.some((form) => path.includes(form.toString()))) return true;
      const file = join(root, path);
      const bytes = bytesOf(file);
      return bytes !== null && forms.some((form) => bytes.includes(form));
    })
    .sort();
}

/** null: it is no file, or was removed meanwhile, as a process's lock is when it ends. */
function bytesOf(file: string): Buffer | null {
  try {
    return lstatSync(file).isFile() ? readFileSync(file) : null;
  } catch (error) {
    if (hasErrno(error, "ENOENT")) return null;
    throw error;
  }
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
