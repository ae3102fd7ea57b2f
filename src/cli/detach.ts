// SPDX-License-Identifier: Apache-2.0
import { spawn } from "node:child_process";
import { mkdir, open } from "node:fs/promises";
import { join, resolve } from "node:path";
import { messageOf, RollcallError } from "../errors.ts";
import { OUTPUT_FILES } from "../rollout/output-dir.ts";

/**
 * Starts this very command once more, without a terminal, logging to OUT/rollcall.log, and waits until it has accepted
 * its input. Answers its pid, or the exit code of a child that refused.
 */
export async function detach(out: string): Promise<{ pid: number; log: string } | { exitCode: number; log: string }> {
  const log = join(resolve(out), OUTPUT_FILES.log);
  let file;
  try {
    await mkdir(resolve(out), { recursive: true });
    file = await open(log, "a");
  } catch (error) {
    throw new RollcallError("out_unusable", `cannot write ${log}: ${messageOf(error)}; choose another --out`, { cause: error });
  }
  const args = process.argv.slice(1).filter((arg) => arg !== "--detach");
  const child = spawn(process.execPath, [...process.execArgv, ...args], {
    detached: true,
    stdio: ["ignore", file.fd, file.fd, "ipc"],
  });
  await file.close();
  return new Promise((settle, fail) => {
    child.once("error", fail);
    child.once("message", () => {
      child.disconnect();
      child.unref();
      settle({ pid: child.pid!, log });
    });
    child.once("exit", (code) => settle({ exitCode: code ?? 70, log }));
  });
}

/** In the detached child: tells the parent that the input is good. Does nothing otherwise. */
export function reportAccepted(): void {
  if (process.send === undefined || !process.connected) return;
  process.send({ accepted: true }, () => process.disconnect());
}
