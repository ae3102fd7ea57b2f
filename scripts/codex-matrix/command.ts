// SPDX-License-Identifier: Apache-2.0
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

const MAIN = fileURLToPath(new URL("../../src/cli/main.js", import.meta.url));
const MAX_SAID = 20_000;

/** Runs the built `rollcall`, as a user would. Its environment is PATH and what is given. `said`: the end of what it wrote. */
export async function rollcall(args: readonly string[], env: Record<string, string>): Promise<{ code: number | null; said: string }> {
  const child = spawn(process.execPath, [MAIN, ...args], {
    stdio: ["ignore", "pipe", "pipe"],
    env: { PATH: process.env["PATH"] ?? "", HOME: "/nonexistent", ...env },
  });
  const stop = (signal: NodeJS.Signals): void => void child.kill(signal);
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, stop);
  let said = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => (said = (said + text).slice(-MAX_SAID)));
  }
  const [code] = (await once(child, "close")) as [number | null];
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.off(signal, stop);
  return { code, said: said.trim() };
}
