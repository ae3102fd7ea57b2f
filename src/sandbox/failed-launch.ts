// SPDX-License-Identifier: Apache-2.0
import type { ChildProcess } from "node:child_process";
import { PassThrough } from "node:stream";
import type { SandboxProcess } from "./types.ts";

/** The process of a command that could not even be spawned: empty streams, and the reason in `exited`. */
export function failedLaunch(detail: string | Promise<string>): SandboxProcess {
  const reason = Promise.resolve(detail);
  return {
    stdin: new PassThrough().resume(),
    stdout: new PassThrough().end(),
    stderr: new PassThrough().end(),
    exited: reason.then((detail) => ({ started: false, detail })),
    stop: () => undefined,
  };
}

/** For a child without a pid: Node tells by an event, soon, why there is none. */
export function spawnError(child: ChildProcess): Promise<string> {
  return new Promise((resolve) => child.once("error", (error) => resolve(error.message)));
}
