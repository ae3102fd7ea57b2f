// SPDX-License-Identifier: Apache-2.0
import { spawn } from "node:child_process";

/**
 * Runs the command a person gave with --on-end through the shell, with the summary's path as its last argument. Its output goes
 * to stderr. Answers what went wrong, for a warning; the batch's exit code stays its own.
 */
export function runOnEnd(command: string, summaryPath: string): Promise<string | null> {
  return new Promise((settle) => {
    const child = spawn("/bin/sh", ["-c", `${command} "$@"`, "rollcall-on-end", summaryPath], { stdio: ["ignore", 2, 2] });
    child.once("error", (error) => settle(error.message));
    child.once("exit", (code, signal) => settle(code === 0 ? null : `it ended with ${signal ?? `exit code ${code}`}`));
  });
}
