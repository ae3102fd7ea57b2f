// SPDX-License-Identifier: Apache-2.0
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";

export interface FleetParts {
  /** The built program, perhaps a copy with a guard taken out. */
  dist: string;
  /** Where output goes: one file a process. */
  logs: string;
  env: Record<string, string>;
  workers: number;
  workerArgs: readonly string[];
  producerArgs: readonly string[];
  /** setpriv(1), so that nothing outlives this process; null = not found. */
  setpriv: string | null;
  onUnexpectedEnd: (end: { who: string; at: number; detail: string }) => void;
  /** Pause before whoever ended by itself is started again, as an init system would. Default a second. */
  againMs?: number;
  /** So many may end by themselves; then it is given up. Default 10. */
  mostEnds?: number;
}

/** A process of the run; `pid` is that of the program itself. */
export interface Member {
  readonly name: string;
  readonly pid: number;
  readonly ended: Promise<string>;
  /** Somebody of ours ended it. */
  expectedEnd: boolean;
  kill(signal: NodeJS.Signals): void;
}

export interface Fleet {
  /** Of all that were ever started. */
  readonly pids: ReadonlySet<number>;
  /** Those that have not ended. */
  workers(): Member[];
  producer(): Member | null;
  /** Ends one, waits, and starts another in its place. */
  replace(member: Member, signal: "SIGKILL" | "SIGTERM", afterMs: number): Promise<void>;
  /** Resolves when the producer has ended by itself, however often it was killed before. */
  done: Promise<void>;
  stop(): Promise<void>;
}

const STOP_MS = 120_000;
const AGAIN_MS = 1_000;
const MOST_ENDS = 10;

/** Starts the workers and the producer, and keeps as many running. The caller stops it. */
export async function startFleet(parts: FleetParts): Promise<Fleet> {
  const { againMs = AGAIN_MS, mostEnds = MOST_ENDS } = parts;
  await mkdir(parts.logs, { recursive: true });
  const pids = new Set<number>();
  const workers = new Set<Member>();
  let producer: Member | null = null;
  let stopping = false;
  let [started, ends] = [0, 0];
  let finish = (): void => undefined;
  const done = new Promise<void>((resolve) => (finish = resolve));

  function start(kind: "worker" | "producer"): Member {
    const name = `${kind}-${++started}`;
    const args = kind === "worker" ? ["worker", ...parts.workerArgs] : ["run", ...parts.producerArgs];
    const log = openSync(join(parts.logs, `${name}.log`), "w", 0o600);
    const words = [
      ...(parts.setpriv === null ? [] : [parts.setpriv, "--pdeathsig", "KILL"]),
      process.execPath,
      join(parts.dist, "src/cli/main.js"),
      ...args,
    ];
    const child: ChildProcess = spawn(words[0]!, words.slice(1), { stdio: ["ignore", log, log], env: parts.env });
    closeSync(log);
    pids.add(child.pid!);
    const ended = once(child, "exit").then(([code, signal]) => (code === null ? String(signal) : `exit code ${String(code)}`));
    const member: Member = { name, pid: child.pid!, ended, expectedEnd: false, kill: (signal) => void child.kill(signal) };
    if (kind === "worker") workers.add(member);
    else producer = member;
    void ended.then((how) => onEnd(kind, member, how));
    return member;
  }

  function onEnd(kind: "worker" | "producer", member: Member, how: string): void {
    if (kind === "worker") workers.delete(member);
    else if (producer === member) producer = null;
    if (stopping || member.expectedEnd) return;
    // 1: some did not complete, which is as it should be.
    if (kind === "producer" && (how === "exit code 0" || how === "exit code 1")) return finish();
    parts.onUnexpectedEnd({ who: member.name, at: Date.now(), detail: how });
    // It will not come up: the oracle is told of all that is lost.
    if (++ends > mostEnds) return finish();
    setTimeout(() => stopping || start(kind), againMs);
  }

  for (let index = 0; index < parts.workers; index++) start("worker");
  start("producer");

  return {
    pids,
    workers: () => [...workers].filter(({ expectedEnd }) => !expectedEnd),
    producer: () => producer,
    async replace(member, signal, afterMs) {
      member.expectedEnd = true;
      member.kill(signal);
      await member.ended;
      await new Promise((resolve) => setTimeout(resolve, afterMs));
      if (!stopping) start(member.name.startsWith("worker") ? "worker" : "producer");
    },
    done,
    async stop() {
      stopping = true;
      const all = [...workers, ...(producer === null ? [] : [producer])];
      for (const member of all) {
        member.kill("SIGCONT");
        member.kill("SIGTERM");
      }
      const tooLate = setTimeout(() => {
        for (const member of all) member.kill("SIGKILL");
      }, STOP_MS);
      const ends = await Promise.all(all.map(async (member) => ({ member, how: await member.ended })));
      clearTimeout(tooLate);
      for (const { member, how } of ends) {
        if (how === "SIGKILL" && !member.expectedEnd)
          parts.onUnexpectedEnd({ who: member.name, at: Date.now(), detail: `did not stop within ${STOP_MS / 1_000} s of SIGTERM` });
      }
    },
  };
}
