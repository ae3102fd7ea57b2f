// SPDX-License-Identifier: Apache-2.0
// Types, lint (type-aware), format, unused code, licence lines: all of them run, then one exit code.
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";

/** @type {[name: string, bin: string, args: string[]][]} */
const steps = [
  ["types", "tsc", ["--noEmit"]],
  ["types of the pages", "tsc", ["-p", "web"]],
  ["lint", "oxlint", ["--type-aware", "--deny-warnings"]],
  ["format", "oxfmt", ["--check"]],
  ["unused code", "knip", []],
];
let failed = [];
for (const [name, bin, args] of steps) {
  const started = Date.now();
  const { status } = spawnSync(`node_modules/.bin/${bin}`, args, { stdio: "inherit" });
  console.log(`check: ${name}: ${status === 0 ? "ok" : "FAILED"} (${((Date.now() - started) / 1000).toFixed(1)} s)`);
  if (status !== 0) failed.push(name);
}

const generated = spawnSync(process.execPath, ["dist/scripts/requirements.js", "--check"], { stdio: "inherit" });
console.log(`check: requirements page: ${generated.status === 0 ? "ok" : "FAILED"}`);
if (generated.status !== 0) failed.push("requirements page");

const sources = spawnSync("git", ["ls-files", "*.ts", "*.tsx", "*.css", "*.mjs", "*.sh"], { encoding: "utf8" })
  .stdout.split("\n")
  .filter(Boolean);
const unlicensed = sources.filter((file) => {
  try {
    return !readFileSync(file, "utf8").split("\n", 3).join("\n").includes("SPDX-License-Identifier: Apache-2.0");
  } catch {
    return false;
  }
});
if (unlicensed.length > 0) {
  console.log(`check: these files lack the line "SPDX-License-Identifier: Apache-2.0":\n  ${unlicensed.join("\n  ")}`);
  failed.push("licence lines");
}
if (failed.length > 0) {
  console.log(`check: failed: ${failed.join(", ")}`);
  process.exit(1);
}
console.log("check: ok");
