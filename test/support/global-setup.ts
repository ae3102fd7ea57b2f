// SPDX-License-Identifier: Apache-2.0
import { execFileSync } from "node:child_process";

/** Builds dist/ once, so that tests of commands and worker processes run what a user runs. */
export function setup(): void {
  execFileSync(process.execPath, ["node_modules/typescript/bin/tsc", "-p", "tsconfig.build.json"], { stdio: "inherit" });
}
