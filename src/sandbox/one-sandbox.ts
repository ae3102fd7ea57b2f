// SPDX-License-Identifier: Apache-2.0
import type { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { messageOf, RollcallError } from "../errors.ts";
import { restoreAccess } from "./directories.ts";
import { placeBeneath, resolveInside } from "./place.ts";
import type { Space } from "./space.ts";
import type { Sandbox, SandboxExec, SandboxExit, SandboxPaths, SandboxProcess, SandboxProviderName, SandboxUsage } from "./types.ts";
import { UsageMeter } from "./usage-meter.ts";

const DEFAULT_MODE = 0o600;
const END_MS = 5000;
/** More than all its steps take; only a call to the kernel that does not return takes longer. */
const DESTROY_MS = 45_000;
const NOTHING_RAN: SandboxUsage = { wall_ms: 0, cpu_ms: null, peak_memory_bytes: null, oom_killed: null, memory_limit_reached: null };

export interface SandboxParts {
  id: string;
  provider: SandboxProviderName;
  space: Space;
  inside: SandboxPaths;
  runtimeDir: string;
  /** Starts the command; `onStart` gets the host pid at the root of its processes. */
  launch(argv: readonly string[], options: SandboxExec, onStart: (pid: number) => void): SandboxProcess;
  /** Kills what is left of the sandbox's processes; the reason when something stays. */
  endStragglers(): Promise<string | null>;
}

/** What both providers have in common: files, one command at a time, and an end that proves itself. */
export class OneSandbox implements Sandbox {
  readonly id: string;
  readonly provider: SandboxProviderName;
  readonly inside: SandboxPaths;
  readonly outside: SandboxPaths;
  readonly runtimeDir: string;
  readonly #parts: SandboxParts;
  #running: SandboxProcess | null = null;
  #usage: UsageMeter | null = null;
  #state: "open" | "closing" | "closed" = "open";
  #destroying: Promise<string | null> | null = null;

  constructor(parts: SandboxParts) {
    this.id = parts.id;
    this.provider = parts.provider;
    this.inside = parts.inside;
    this.outside = parts.space.paths;
    this.runtimeDir = parts.runtimeDir;
    this.#parts = parts;
  }

  async place(path: string, body: Uint8Array | Readable, mode = DEFAULT_MODE): Promise<void> {
    this.#requireOpen();
    const { root, names } = resolveInside(path, this.inside, this.outside);
    await placeBeneath(root, names, body, { mode, owner: this.#parts.space.owner });
  }

  exec(argv: readonly string[], options: SandboxExec): SandboxProcess {
    this.#requireOpen();
    if (this.#running !== null) throw new RollcallError("sandbox_failed", `sandbox ${this.id} runs a command already`);
    checkWords(argv, options);
    const usage = new UsageMeter(this.#parts.space.cgroup);
    const process = this.#parts.launch(argv, options, (pid) => usage.watch(pid));
    this.#usage = usage;
    const { stdin, stdout, stderr } = process;
    this.#running = { stdin, stdout, stderr, stop: (options) => process.stop(options), exited: this.#ended(process) };
    return this.#running;
  }

  usage(): SandboxUsage {
    return this.#usage?.read() ?? NOTHING_RAN;
  }

  async destroy(): Promise<{ cleanup_error: string | null }> {
    if (this.#state === "closed") return { cleanup_error: null };
    this.#state = "closing";
    this.#destroying ??= this.#destroy().then((cleanup_error) => {
      this.#destroying = null; // what failed may be tried again
      if (cleanup_error === null) this.#state = "closed";
      return cleanup_error;
    });
    const patience = new AbortController();
    const late = sleep(DESTROY_MS, `it was still being removed after ${DESTROY_MS / 1000} s`, { signal: patience.signal }).catch(
      () => null,
    );
    const cleanup_error = await Promise.race([this.#destroying, late]);
    patience.abort();
    return { cleanup_error };
  }

  async #ended(process: SandboxProcess): Promise<SandboxExit> {
    const exit = await process.exited;
    this.#usage?.end();
    // A root worker reads everything anyway. What cannot be restored shows as unreadable where it is collected.
    if (this.#parts.space.owner === null) await restoreAccess(this.#parts.space.directory, "u+rX").catch(() => undefined);
    this.#running = null;
    return exit;
  }

  async #destroy(): Promise<string | null> {
    try {
      this.#running?.stop({ graceMs: 0 });
      await Promise.race([this.#running?.exited, sleep(END_MS, undefined, { ref: false })]);
      return (await this.#parts.endStragglers()) ?? (await this.#parts.space.close());
    } catch (error) {
      return messageOf(error);
    }
  }

  #requireOpen(): void {
    if (this.#state !== "open") throw new RollcallError("sandbox_failed", `sandbox ${this.id} is destroyed`);
  }
}

/** A NUL would end one of bwrap's options early and begin another one of the task's choice. */
function checkWords(argv: readonly string[], { env, cwd }: SandboxExec): void {
  if (argv.length === 0) throw new RollcallError("sandbox_failed", "there is no command to run");
  const words = [...argv, cwd, ...Object.entries(env).flat()];
  if (words.some((word) => word.includes("\0")))
    throw new RollcallError("sandbox_failed", "a NUL character in the command, its directory or its environment");
  const bad = Object.keys(env).find((name) => name === "" || name.includes("="));
  if (bad !== undefined) throw new RollcallError("sandbox_failed", `${JSON.stringify(bad)} cannot be the name of an environment variable`);
}
