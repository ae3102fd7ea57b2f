// SPDX-License-Identifier: Apache-2.0
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { KILL_PLACES } from "./kill-points.ts";

/** Puts every kill point into a copy of dist/. Throws Error with all statements that are not there exactly once. */
export function insertKillPoints(dist: string): void {
  const missing = KILL_PLACES.flatMap(({ file, holds }) => {
    const count = readFileSync(join(dist, file), "utf8").split(holds).length - 1;
    return count === 1 ? [] : [`"${holds}" is there ${count} times in ${file}, not once`];
  });
  if (missing.length > 0) throw new Error(`test/support/kill-points.ts must follow the code:\n${missing.join("\n")}`);
  mkdirSync(join(dist, "died"));
  copyFileSync(fileURLToPath(new URL("kill-here.mjs", import.meta.url)), join(dist, "kill-here.mjs"));
  for (const { name, file, holds, names, when, whenIdle, before, after } of KILL_PLACES) {
    const call = (side: "before" | "after"): string => {
      const kill = whenIdle === true ? "await killPoints.killWhenIdle" : "killPoints.killHere";
      return `${when === undefined ? "" : `if (${when}) `}${kill}("${name}-${side}", ${names});`;
    };
    wrap(dist, file, holds, { before: before === null ? "" : call("before"), after: after === null ? "" : call("after") });
  }
  const worker = "src/queue/activation-worker.js";
  wrap(dist, worker, "= running.add(", { before: "", after: "killPoints.began();" });
  wrap(dist, worker, "running.remove(", { before: "", after: "killPoints.ended();" });
}

function wrap(dist: string, file: string, holds: string, { before, after }: { before: string; after: string }): void {
  const path = join(dist, file);
  const text = readFileSync(path, "utf8");
  const start = startOfStatement(text, text.indexOf(holds));
  const end = endOfStatement(text, start);
  const statement = text.slice(start, end).trim();
  const wrapped = statement.startsWith("return ")
    ? `const returned = ${statement.slice("return ".length)} ${after} return returned;`
    : `${statement} ${after}`;
  const imported = text.includes("killPoints from")
    ? ""
    : `import * as killPoints from "${"../".repeat(file.split("/").length - 1)}kill-here.mjs";\n`;
  writeFileSync(path, `${imported}${text.slice(0, start)}${before} ${wrapped}${text.slice(end)}`);
}

/** Where its line begins, or that of the condition before it. */
function startOfStatement(text: string, at: number): number {
  const line = text.lastIndexOf("\n", at) + 1;
  const before = text.lastIndexOf("\n", line - 2) + 1;
  return /^\s*if \(.*\)$/.test(text.slice(before, line - 1)) ? before : line;
}

/** Behind the first semicolon that stands in no bracket. */
function endOfStatement(text: string, start: number): number {
  let depth = 0;
  for (let at = start; at < text.length; at++) {
    const sign = text[at]!;
    if ("([{".includes(sign)) depth++;
    else if (")]}".includes(sign)) depth--;
    else if (sign === ";" && depth === 0) return at + 1;
  }
  throw new Error(`no end of the statement ${text.slice(start, start + 80)}`);
}
