// SPDX-License-Identifier: Apache-2.0
import type { Readable, Writable } from "node:stream";
import type { ProcessIdentity } from "../host/process.ts";

/**
 * Where one attempt of one activation runs. The supervisor is the worker, outside: nothing of ours lives in the
 * sandbox's pid namespace, where the model could kill it.
 */
export interface SandboxProvider {
  readonly name: SandboxProviderName;
  /** Ends what runs on this host of an activation's earlier attempts. Only for the holder of its claim. Answers which sandboxes did not end. */
  endEarlier(owner: SandboxSpec["owner"]): Promise<string[]>;
  /** Runs `true` in the real profile. Never throws: what is missing, and how to fix it, is in the report. */
  probe(): Promise<SandboxProbe>;
  /**
   * Makes the sandbox's directories and records its owner on disk BEFORE anything else, so that a reaper finds it.
   * Throws RollcallError "sandbox_failed" and leaves nothing behind when it cannot. `signal` aborted: nobody waits for the
   * sandbox any more; it gives up at its next step, and gives back what it had begun.
   */
  create(spec: SandboxSpec, signal?: AbortSignal): Promise<Sandbox>;
}

export type SandboxProviderName = "bubblewrap" | "host";

export interface SandboxProbe {
  ok: boolean;
  /** e.g. "bubblewrap 0.8.0 (/usr/bin/bwrap), unprivileged uid per activation". */
  summary: string;
  /** What to do about it; only when not ok, and when the summary does not say it. */
  fix?: string;
  /** True when each activation has a uid of its own; false: isolation by mount and pid namespaces only. */
  uidPerActivation: boolean;
  /** Which limits are enforced here, e.g. ["pids", "file size"]; the rest is reported as unsupported. */
  limits: string[];
}

export interface SandboxSpec {
  /** Unique, safe as a file name. */
  id: string;
  owner: {
    activation_id: string;
    attempt: number;
    process: ProcessIdentity;
    /** Where the activation's end is committed; with it the sandbox of a lost claim is found. Absent in records of earlier versions. */
    store_id?: string;
  };
  /** Directory tree with the program to run, mounted read-only; see {@link Sandbox.runtimeDir}. */
  runtime: SandboxRuntime;
  limits: SandboxLimits;
  network: { mode: "shared" };
  /** Loopback listeners served by the worker; none yet. */
  listeners: readonly never[];
}

export interface SandboxRuntime {
  /** Names the content, e.g. "codex-0.144.4"; a root worker keeps one shared copy per key. Safe as a file name. */
  key: string;
  hostDir: string;
  /** Only these entries of hostDir; absent = the whole tree. */
  only?: readonly string[];
}

export interface SandboxLimits {
  memory_mb?: number;
  cpus?: number;
  pids?: number;
  /** Of each single file. */
  disk_mb?: number;
}

export interface Sandbox {
  readonly id: string;
  readonly provider: SandboxProviderName;
  /** Paths as seen by the sandboxed process. */
  readonly inside: SandboxPaths;
  /** The same directories as seen by the worker. */
  readonly outside: SandboxPaths;
  /** Where {@link SandboxSpec.runtime} is, seen from inside. */
  readonly runtimeDir: string;
  /**
   * Writes one file before exec. `path` is absolute inside, or relative to the workdir; it must lie in the workdir, the home or
   * CODEX_HOME. Parents are made; owner is the sandbox's user; links are not followed. Throws "bad_path" otherwise.
   */
  place(path: string, body: Uint8Array | Readable, mode?: number): Promise<void>;
  /**
   * Starts one command, without a shell. Its environment is exactly `env` (bubblewrap adds PWD, host
   * ROLLCALL_SANDBOX_ID). At most one at a time. Throws "sandbox_failed" for a second one, after destroy(), and for a
   * NUL or a bad variable name; what goes wrong in the launch itself is in `exited`.
   */
  exec(argv: readonly string[], options: SandboxExec): SandboxProcess;
  usage(): SandboxUsage;
  /**
   * Ends every process, removes every directory, checks that both are gone. Idempotent and bounded (about 10 s, 45 s where the
   * kernel or a disk hangs); never throws: what could not be removed is in the answer, and the owner record then stays for a
   * reaper.
   */
  destroy(): Promise<{ cleanup_error: string | null }>;
}

export interface SandboxPaths {
  workdir: string;
  home: string;
  codexHome: string;
  tmp: string;
}

export interface SandboxExec {
  env: Readonly<Record<string, string>>;
  /** Inside path. */
  cwd: string;
  /** A command that has not begun by then (a mount that hangs) is a failed launch; absent = it may take for ever. Host: it begins at once. */
  beginWithinMs?: number;
}

export interface SandboxProcess {
  readonly stdin: Writable;
  readonly stdout: Readable;
  readonly stderr: Readable;
  /** Settles once, never rejects; after every process of the sandbox ended, where the provider can know (bubblewrap). */
  readonly exited: Promise<SandboxExit>;
  /**
   * SIGTERM reaches the command itself (not the sandbox around it), SIGKILL everything. After SIGTERM, SIGKILL follows
   * by itself when `graceMs` pass. Safe to call again and after the end.
   */
  stop(options: { graceMs: number }): void;
}

export type SandboxExit =
  /** Died by a signal: `code` null. `outside`: it was killed with the whole sandbox, which nothing inside can do, and not by `stop`. */
  | { started: true; code: number | null; signal: NodeJS.Signals | null; outside?: true }
  /** The command never began: bad mount, missing program, no namespaces. `detail` is the sandbox's own message. */
  | { started: false; detail: string };

/** What was measured; null = this provider cannot tell. */
export interface SandboxUsage extends MemoryEnd {
  wall_ms: number;
  cpu_ms: number | null;
  /** With a control group: of the sandbox so far, with what the kernel keeps of its files in memory. Else of its processes. */
  peak_memory_bytes: number | null;
}

/** What a shortage of memory did to a command; null = this provider cannot tell. */
export interface MemoryEnd {
  /** The kernel killed a process of the command for memory: the command itself, or one that it started. */
  oom_killed: boolean | null;
  /** The sandbox's own memory limit was reached so far. False beside `oom_killed`: the host, or the worker, ran short of memory. */
  memory_limit_reached: boolean | null;
}
