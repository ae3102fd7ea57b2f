// SPDX-License-Identifier: Apache-2.0
import { spawn, type ChildProcess } from "node:child_process";
import type { Readable, Writable } from "node:stream";
import { messageOf } from "../errors.ts";
import { failedLaunch, spawnError } from "./failed-launch.ts";
import { allPids, killUntilGone, markedProcesses, readProc, SANDBOX_MARK } from "./processes.ts";
import type { SandboxExit, SandboxProcess } from "./types.ts";

const END_MS = 5000;

export interface HostLaunch {
  /** See {@link SANDBOX_MARK}. */
  mark: string;
  argv: readonly string[];
  env: Readonly<Record<string, string>>;
  cwd: string;
  onStart: (pid: number) => void;
}

/** Runs one command on the host in a session of its own. Never throws: see `exited`. */
export function startOnHost(launch: HostLaunch): SandboxProcess {
  const [file = "", ...args] = launch.argv;
  let child: ChildProcess;
  try {
    child = spawn(file, args, { cwd: launch.cwd, env: { ...launch.env, [SANDBOX_MARK]: launch.mark }, detached: true });
  } catch (error) {
    return failedLaunch(messageOf(error));
  }
  if (child.pid === undefined) return failedLaunch(spawnError(child));
  launch.onStart(child.pid);
  return new RunningOnHost(child, child.pid, launch.mark);
}

class RunningOnHost implements SandboxProcess {
  readonly stdin: Writable;
  readonly stdout: Readable;
  readonly stderr: Readable;
  readonly exited: Promise<SandboxExit>;
  readonly #child: ChildProcess;
  readonly #timers = new Set<NodeJS.Timeout>();
  #ended = false;

  constructor(child: ChildProcess, pid: number, mark: string) {
    this.#child = child;
    this.stdin = child.stdin as Writable;
    this.stdin.on("error", () => undefined); // EPIPE when the command ends without reading; `exited` tells
    this.stdout = child.stdout as Readable;
    this.stderr = child.stderr as Readable;
    this.exited = this.#run(pid, mark);
  }

  stop({ graceMs }: { graceMs: number }): void {
    if (this.#ended) return;
    this.#child.kill(graceMs > 0 ? "SIGTERM" : "SIGKILL"); // what it leaves behind is ended after it
    if (graceMs > 0) this.#timers.add(setTimeout(() => this.#child.kill("SIGKILL"), graceMs));
  }

  async #run(pid: number, mark: string): Promise<SandboxExit> {
    const exit = await new Promise<SandboxExit>((resolve) => {
      this.#child.once("exit", (code, signal) => resolve({ started: true, code, signal }));
    });
    this.#ended = true;
    for (const timer of this.#timers) clearTimeout(timer);
    await endHostProcesses(mark, pid);
    return exit;
  }
}

/**
 * Kills what still carries the sandbox's mark or is in its session; false when something stays. A process that did
 * both, clear its environment and leave the session, escapes: this provider isolates nothing. Without /proc (macOS)
 * only the process group is reached.
 */
export async function endHostProcesses(mark: string, session: number | null): Promise<boolean> {
  let looksAt = session; // an empty session stays empty, and its number may become another's
  const find = (): number[] => {
    const members = looksAt === null ? [] : processesOfSession(looksAt);
    if (members.length === 0) looksAt = null;
    return [...markedProcesses(mark), ...members];
  };
  if (process.platform === "linux") return killUntilGone(find, END_MS);
  if (session !== null) killGroup(session);
  return true;
}

function processesOfSession(session: number): number[] {
  return allPids().filter((pid) => pid !== process.pid && sessionOf(pid) === session);
}

/** Null for a zombie. */
function sessionOf(pid: number): number | null {
  const stat = readProc(pid, "stat");
  const fields = stat?.slice(stat.lastIndexOf(")") + 2).split(" ");
  return fields === undefined || fields[0] === "Z" ? null : Number(fields[3]);
}

function killGroup(group: number): void {
  try {
    process.kill(-group, "SIGKILL");
  } catch {
    // empty already
  }
}
