// SPDX-License-Identifier: Apache-2.0
import { readFileSync, readdirSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { createBubblewrapProvider } from "../../../src/sandbox/bubblewrap.ts";
import { createHostProvider } from "../../../src/sandbox/host.ts";
import { processIdentity } from "../../../src/host/process.ts";
import type { Sandbox, SandboxExit, SandboxProcess, SandboxProvider, SandboxSpec } from "../../../src/sandbox/types.ts";

/** What a conformance worker is told by the test that starts it. */
export interface Setting {
  provider: "bubblewrap" | "host";
  bwrapPath: string;
  /** Directory with bin/codex. */
  codexDir: string;
  stateDir: string;
  runtimeRoot: string;
  projectDir: string;
}

export interface Check {
  title: string;
  /** Absent = for both providers. */
  only?: "bubblewrap" | "host";
  /** Needs a uid for each activation. */
  needsRoot?: boolean;
  /** Needs a worker that may make control groups. */
  needsCgroups?: boolean;
  run: (context: Context) => Promise<void>;
}

export interface Result {
  exit: SandboxExit;
  stdout: string;
  stderr: string;
}

/** One check's access to the provider; destroys what it opened. */
export class Context {
  readonly setting: Setting;
  readonly provider: SandboxProvider;
  readonly #open: Sandbox[] = [];

  constructor(setting: Setting) {
    this.setting = setting;
    this.provider = setting.provider === "bubblewrap" ? createBubblewrapProvider(setting) : createHostProvider(setting);
  }

  spec(changes: Partial<SandboxSpec> = {}): SandboxSpec {
    const id = `check-${process.pid}-${Math.random().toString(36).slice(2)}`;
    const self = processIdentity();
    if (self === null) throw new Error("no identity");
    return {
      id,
      owner: { activation_id: id, attempt: 1, process: self },
      runtime: { key: "codex", hostDir: this.setting.codexDir, only: ["bin"] },
      limits: {},
      network: { mode: "shared" },
      listeners: [],
      ...changes,
    };
  }

  async open(changes: Partial<SandboxSpec> = {}): Promise<Sandbox> {
    const sandbox = await this.provider.create(this.spec(changes));
    this.#open.push(sandbox);
    return sandbox;
  }

  async close(): Promise<void> {
    for (const sandbox of this.#open.splice(0)) {
      const { cleanup_error } = await sandbox.destroy();
      if (cleanup_error !== null) throw new Error(cleanup_error);
    }
  }
}

const PATH = "/usr/local/bin:/usr/bin:/bin";

export function start(sandbox: Sandbox, argv: string[], env: Record<string, string> = { PATH }): SandboxProcess {
  return sandbox.exec(argv, { env, cwd: sandbox.inside.workdir });
}

export async function finish(running: SandboxProcess, stdin = ""): Promise<Result> {
  running.stdin.end(stdin);
  const [stdout, stderr, exit] = await Promise.all([collect(running.stdout), collect(running.stderr), running.exited]);
  return { exit, stdout, stderr };
}

export async function run(sandbox: Sandbox, argv: string[], env?: Record<string, string>): Promise<Result> {
  return finish(start(sandbox, argv, env));
}

/** Runs a shell script and returns what it printed, whatever its exit code. */
export async function sh(sandbox: Sandbox, script: string): Promise<string> {
  return (await run(sandbox, ["/bin/sh", "-c", script])).stdout;
}

async function collect(stream: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks).toString("latin1");
}

/** Pids of living processes whose arguments contain `text`. */
export function processesNaming(text: string): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/u.test(name) && Number(name) !== process.pid)
    .filter((name) => {
      try {
        return readFileSync(`/proc/${name}/cmdline`, "latin1").includes(text);
      } catch {
        return false;
      }
    })
    .map(Number);
}

export async function until(condition: () => boolean | Promise<boolean>, what: string, timeoutMs = 10_000): Promise<void> {
  const deadline = Date.now() + timeoutMs;
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error(`waited ${timeoutMs} ms in vain until ${what}`);
    await sleep(20);
  }
}

/** A number that no other process has among its arguments, for `sleep`. */
export function uniqueSeconds(): string {
  return `9${Math.floor(Math.random() * 1e9)}.${process.pid}`;
}
