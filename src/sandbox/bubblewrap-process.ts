// SPDX-License-Identifier: Apache-2.0
import { spawn, type ChildProcess } from "node:child_process";
import { constants } from "node:os";
import { createInterface } from "node:readline";
import { once } from "node:events";
import { Transform, type Readable, type Writable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { messageOf } from "../errors.ts";
import { isAlive, processIdentity, type ProcessIdentity } from "../host/process.ts";
import { BWRAP_FDS, GROUP, PASSWD } from "./bubblewrap-profile.ts";
import type { FileOwner } from "./directories.ts";
import { failedLaunch, spawnError } from "./failed-launch.ts";
import { inheritableDescriptors, maskInherited } from "./inherited-descriptors.ts";
import { childrenOf, factsOf, markedProcesses, processesOfUid, SANDBOX_MARK, sendSignal, waitUntilDead } from "./processes.ts";
import type { SandboxExit, SandboxProcess } from "./types.ts";

const DETAIL_BYTES = 2000;
const NAMESPACE_END_MS = 10_000;
const UNKNOWN_PID1_MS = 3000;

export interface BubblewrapLaunch {
  /** bwrap itself, perhaps with prlimit before it, ending in `--` and the command. */
  words: readonly string[];
  /** Host directory in which `words` are to be understood. */
  cwd: string;
  /** bwrap's options, passed where no process list shows them. */
  options: readonly string[];
  /** bwrap never runs as root: sandbox uid 1000 would be root outside. Null = the worker is not root. */
  user: FileOwner;
  /** See {@link SANDBOX_MARK}. */
  mark: string;
  /** Moves bwrap, which then waits for its options and has no children yet, into the sandbox's control group. */
  joinGroup: (pid: number) => Promise<void>;
  /** Called with the host pid of the sandbox's pid 1, once there is one. */
  onStart: (pid: number) => void;
  /** See {@link SandboxExec.beginWithinMs}; null = it may take for ever. */
  beginWithinMs: number | null;
}

/** Runs one command in bubblewrap. Never throws: what goes wrong is a launch failure in `exited`. */
export function startBubblewrap(launch: BubblewrapLaunch): SandboxProcess {
  const [file = "", ...args] = launch.words;
  let child: ChildProcess;
  try {
    child = spawn(file, args, {
      cwd: launch.cwd,
      env: { [SANDBOX_MARK]: launch.mark }, // and nothing else: pid 1 of the sandbox is bwrap, whose environment can be read inside
      stdio: maskInherited(
        Array.from({ length: 3 + Object.keys(BWRAP_FDS).length }, () => "pipe" as const),
        inheritableDescriptors(),
      ),
      ...launch.user,
    });
  } catch (error) {
    return failedLaunch(messageOf(error)); // e.g. EINVAL: a uid that does not exist in this user namespace
  }
  if (child.pid === undefined) return failedLaunch(spawnError(child));
  return new RunningBubblewrap(child, child.pid, launch);
}

/** bwrap and pid 1 of a sandbox, and whatever runs under a uid that only this sandbox has (null: it has none). */
export function processesInBubblewrap(mark: string, uid: number | null): number[] {
  return [...new Set([...markedProcesses(mark), ...(uid === null ? [] : processesOfUid(uid))])];
}

class RunningBubblewrap implements SandboxProcess {
  readonly stdin: Writable;
  readonly stdout: Readable;
  readonly stderr: Readable;
  readonly exited: Promise<SandboxExit>;
  readonly #child: ChildProcess;
  readonly #closed: Promise<unknown>;
  readonly #timers = new Set<NodeJS.Timeout>();
  #pid1: ProcessIdentity | null = null;
  #exitCode: number | null = null;
  readonly #pid1Killed: () => boolean;
  #stderrHead = "";
  #joinError: string | null = null;
  #ended = false;
  #terminating = false;
  #killed = false;
  #beganTooLate: string | null = null;
  /** Settles when even SIGKILL does not end it: a process that waits in the kernel for a disk dies only when that answers. */
  readonly #unkillable: Promise<void>;
  #giveUp: () => void = () => undefined;

  constructor(child: ChildProcess, pid: number, launch: BubblewrapLaunch) {
    this.#child = child;
    this.#closed = once(child, "close").catch(() => undefined);
    this.#unkillable = new Promise((resolve) => (this.#giveUp = resolve));
    this.stdin = child.stdin as Writable;
    this.stdin.on("error", () => undefined); // EPIPE when the command ends without reading; `exited` tells
    this.stdout = child.stdout as Readable;
    this.stderr = this.#keepHead(child.stderr as Readable);
    this.#pid1Killed = followEnds(child);
    void this.#begin(pid, launch);
    const { beginWithinMs } = launch;
    if (beginWithinMs !== null) this.#timers.add(setTimeout(() => this.#requireBegun(beginWithinMs), beginWithinMs));
    this.exited = this.#run(this.#readStatus(launch.onStart).catch(() => undefined));
  }

  /** bwrap does nothing before it has read all of its options: whatever it starts is in the group then. */
  async #begin(pid: number, launch: BubblewrapLaunch): Promise<void> {
    try {
      await launch.joinGroup(pid);
    } catch (error) {
      this.#joinError = `the process could not be moved into the sandbox's control group: ${messageOf(error)}`;
      this.#child.kill("SIGKILL");
      return;
    }
    send(this.#child, BWRAP_FDS.args, launch.options.map((option) => `${option}\0`).join(""));
    send(this.#child, BWRAP_FDS.passwd, PASSWD);
    send(this.#child, BWRAP_FDS.group, GROUP);
  }

  /** bwrap says when there is a pid 1; that mounts are made too shows in the command, which that one starts last. */
  #requireBegun(ms: number): void {
    if (this.#pid1 !== null && commandIn(this.#pid1.pid) !== null) return;
    this.#beganTooLate = `bubblewrap did not begin the command within ${ms / 1000} s`;
    this.#kill();
  }

  stop({ graceMs }: { graceMs: number }): void {
    if (this.#ended) return;
    if (graceMs <= 0) return this.#kill();
    this.#timers.add(setTimeout(() => this.#kill(), graceMs));
    if (!this.#terminating) void this.#terminate();
  }

  /** A signal to bwrap would be SIGKILL for all; so it goes to the command, which may not have begun yet. */
  async #terminate(): Promise<void> {
    this.#terminating = true;
    while (!this.#ended) {
      const pid = this.#pid1 === null ? null : commandIn(this.#pid1.pid);
      if (pid !== null && sendSignal(pid, "SIGTERM")) return;
      await sleep(20);
    }
  }

  /**
   * Ends pid 1, and with it the namespace, and bwrap. Killing bwrap alone is not enough: until the command begins, pid
   * 1 does not die with it but goes on and runs the command without anybody (seen with bwrap 0.8 and Codex's). So
   * before pid 1 is known, which takes milliseconds, the kill waits for it.
   */
  #kill(): void {
    this.#killed = true;
    this.#timers.add(setTimeout(this.#giveUp, NAMESPACE_END_MS));
    if (this.#pid1 === null) return void this.#timers.add(setTimeout(() => this.#child.kill("SIGKILL"), UNKNOWN_PID1_MS));
    if (isAlive(this.#pid1)) sendSignal(this.#pid1.pid, "SIGKILL");
    this.#child.kill("SIGKILL");
  }

  async #run(statusRead: Promise<void>): Promise<SandboxExit> {
    const outcome = await new Promise<{ code: number | null; signal: NodeJS.Signals | null }>((resolve) => {
      this.#child.once("exit", (code, signal) => resolve({ code, signal }));
      void this.#unkillable.then(() => resolve({ code: null, signal: "SIGKILL" }));
    });
    await Promise.race([statusRead, this.#unkillable]);
    // bwrap ends at once when the command does; what the command left behind dies just after, with pid 1.
    if (this.#pid1 !== null) await waitUntilDead(this.#pid1, NAMESPACE_END_MS);
    this.#ended = true;
    for (const timer of this.#timers) clearTimeout(timer);
    if (this.#beganTooLate !== null) return { started: false, detail: this.#beganTooLate };
    if (this.#exitCode !== null) {
      const exit = exitOf(this.#exitCode);
      return { started: true, ...exit, ...(!this.#killed && this.#pid1Killed() ? { outside: true } : {}) };
    }
    if (this.#pid1 !== null && this.#killed) return { started: true, code: null, signal: "SIGKILL" };
    // bwrap itself was killed, which nothing inside can see.
    if (this.#pid1 !== null && outcome.signal !== null) return { started: true, code: null, signal: outcome.signal, outside: true };
    return { started: false, detail: await this.#launchFailure(outcome.code, outcome.signal) };
  }

  /** {"child-pid": N, ...} when the sandbox is there; {"exit-code": N} when the command ran and ended. */
  async #readStatus(onStart: (pid: number) => void): Promise<void> {
    const input = this.#child.stdio[BWRAP_FDS.status] as Readable;
    for await (const line of createInterface({ input })) {
      const status = parseStatus(line);
      if (status["child-pid"] !== undefined) {
        this.#pid1 = processIdentity(status["child-pid"]);
        if (this.#killed) this.#kill();
        else onStart(status["child-pid"]);
      }
      this.#exitCode = status["exit-code"] ?? this.#exitCode;
    }
  }

  #keepHead(stderr: Readable): Readable {
    const keep = (chunk: Buffer): void => {
      if (this.#stderrHead.length < DETAIL_BYTES) this.#stderrHead += chunk.toString("latin1");
    };
    const head = new Transform({
      transform(chunk: Buffer, _encoding, done) {
        keep(chunk);
        done(null, chunk);
      },
    });
    return stderr.pipe(head);
  }

  async #launchFailure(code: number | null, signal: NodeJS.Signals | null): Promise<string> {
    await Promise.race([this.#closed, sleep(500)]); // its message may still be on the way
    const said = this.#stderrHead.slice(0, DETAIL_BYTES).trim() || this.#joinError;
    return said ?? `bubblewrap ended before the command began (${signal ?? `exit code ${code}`})`;
  }
}

/** The command is the first process that pid 1 made, so it has the lowest number inside; others are orphans. */
function commandIn(pid1: number): number | null {
  const children = childrenOf(pid1)
    .map(factsOf)
    .filter((facts) => facts !== null);
  return children.toSorted((a, b) => a.innerPid - b.innerPid)[0]?.pid ?? null;
}

/**
 * Tells whether pid 1 was killed, which nothing inside can do; bwrap reports that and a kill of the command alike. A pid 1 that is
 * killed closes its own descriptor before the kernel ends the rest of its namespace and before bwrap hears of it. One that ends by
 * itself has either waited for the last process inside, with which the command's descriptor closes, or dies with bwrap, which
 * reports the command's end before. So its descriptor closes first of the three in the first case only. Inside, the command's can be
 * closed early, which hides a kill from outside and never feigns one.
 */
function followEnds(child: ChildProcess): () => boolean {
  const stdio: readonly unknown[] = child.stdio; // its type knows five
  let first: keyof typeof BWRAP_FDS | null = null;
  for (const name of ["pid1", "command"] as const) {
    const held = stdio[BWRAP_FDS[name]] as Readable;
    held.on("error", () => undefined);
    held.on("end", () => (first ??= name)).resume();
  }
  (stdio[BWRAP_FDS.status] as Readable).on("data", (chunk: Buffer) => {
    if (chunk.includes('"exit-code"')) first ??= "status";
  });
  return () => first === "pid1";
}

/** bwrap reports death by signal N as exit code 128 + N, as a shell does; a program that exits so by itself looks the same. */
function exitOf(code: number): { code: number | null; signal: NodeJS.Signals | null } {
  const names = Object.entries(constants.signals) as [NodeJS.Signals, number][];
  const signal = names.find(([, number]) => code === 128 + number)?.[0];
  return signal === undefined ? { code, signal: null } : { code: null, signal };
}

function parseStatus(line: string): { "child-pid"?: number; "exit-code"?: number } {
  try {
    return JSON.parse(line) as { "child-pid"?: number; "exit-code"?: number };
  } catch {
    return {}; // an empty line, or one cut off when bwrap was killed
  }
}

function send(child: ChildProcess, fd: number, text: string): void {
  const pipe = child.stdio[fd] as Writable;
  pipe.on("error", () => undefined); // bwrap ended first; its exit says so
  pipe.end(text);
}
