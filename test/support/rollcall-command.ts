// SPDX-License-Identifier: Apache-2.0
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

const DIST = fileURLToPath(new URL("../../dist/", import.meta.url));

export interface CommandEnd {
  code: number | null;
  stdout: string;
  stderr: string;
}

export interface RunningCommand {
  child: ChildProcess;
  /** What it wrote so far. */
  stderr(): string;
  stdout(): string;
  ended: Promise<CommandEnd>;
}

/** Starts the built `rollcall` as a user does, or another `entry` of dist/. Its environment is PATH, HOME and what is given. */
export function startRollcall(
  args: readonly string[],
  options: { env?: Record<string, string>; cwd?: string; uid?: number; entry?: string } = {},
): RunningCommand {
  const child = spawn(process.execPath, [DIST + (options.entry ?? "src/cli/main.js"), ...args], {
    stdio: ["ignore", "pipe", "pipe"],
    env: { PATH: process.env["PATH"] ?? "", HOME: "/nonexistent", ...options.env },
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    ...(options.uid === undefined ? {} : { uid: options.uid, gid: options.uid }),
  });
  let [stdout, stderr] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  const ended = once(child, "close").then(([code]) => ({ code: code as number | null, stdout, stderr }));
  return { child, stdout: () => stdout, stderr: () => stderr, ended };
}

export function rollcall(args: readonly string[], options?: Parameters<typeof startRollcall>[1]): Promise<CommandEnd> {
  return startRollcall(args, options).ended;
}
