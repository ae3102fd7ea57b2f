// SPDX-License-Identifier: Apache-2.0
import { spawnSync } from "node:child_process";

/**
 * Builds dist/ once, pages included, so that tests of commands and worker processes run what a user runs. Type errors are printed and do
 * not stop the tests: `npm run check` fails on them, and tsc emits all the same.
 */
export function setup(): void {
  spawnSync(process.execPath, ["node_modules/typescript/bin/tsc", "-p", "tsconfig.build.json"], { stdio: "inherit" });
  spawnSync(process.execPath, ["node_modules/vite/bin/vite.js", "build", "web"], { stdio: "inherit" });
}
