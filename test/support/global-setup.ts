// SPDX-License-Identifier: Apache-2.0
import { spawnSync } from "node:child_process";

/**
 * Builds dist/ once, pages included, so that tests of commands and worker processes run what a user runs. Type errors are printed and do
 * not stop the tests: `npm run check` fails on them, and tsc emits all the same.
 */
export function setup(): void {
  spawnSync("bash", ["scripts/build.sh"], { stdio: "inherit" });
}
