// SPDX-License-Identifier: Apache-2.0
import { existsSync, lstatSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { basename, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { readHolder } from "../../src/host/lock-file.ts";
import { isAlive } from "../../src/host/process.ts";
import { DEFAULT_RUNTIME_ROOT } from "../../src/sandbox/bubblewrap.ts";
import { SANDBOX_MARK, allPids, factsOf, readProc } from "../../src/sandbox/processes.ts";
import type { OwnerRecord } from "../../src/sandbox/owner-record.ts";
import type { RunFacts } from "./facts.ts";
import { namesIn } from "./watch.ts";

export interface LeftoverParts {
  /** The run's directory. */
  root: string;
  /** Owner records; and where temporary files of its processes go. */
  records: string;
  temporary: string;
  /** Of every sandbox that was seen. */
  sandboxes: readonly OwnerRecord[];
  /** Processes that were there before. */
  before: ReadonlySet<number>;
  /** Every process that the run started. */
  pids: ReadonlySet<number>;
  /** How long it may still take to go. Default 15 s. */
  patienceMs?: number;
}

const PATIENCE_MS = 15_000;

/** What is left of a run whose processes have all been told to end. Waits a little for what is just ending. */
export async function findLeftovers(parts: LeftoverParts): Promise<RunFacts["left"]> {
  const until = Date.now() + (parts.patienceMs ?? PATIENCE_MS);
  for (;;) {
    const left = await look(parts);
    if (Object.values(left).every((list) => list.length === 0) || Date.now() > until) return left;
    await delay(500);
  }
}

async function look({ root, records, temporary, sandboxes, before, pids }: LeftoverParts): Promise<RunFacts["left"]> {
  return {
    processes: await processesOf(root, sandboxes, before),
    directories: sandboxes.map(({ directory }) => directory).filter((path) => existsSync(path)),
    records: namesIn(records),
    sockets: socketsBelow(root),
    mounts: readFileSync("/proc/self/mountinfo", "utf8")
      .split("\n")
      .filter((line) => names(line, root) || sandboxes.some(({ directory }) => line.includes(directory))),
    locks: await locksOf(pids),
    cgroups: sandboxes.flatMap(({ cgroups = [] }) => cgroups).filter((path) => existsSync(path)),
    temporary: namesIn(temporary),
  };
}

/** All of /proc that was not there before and names the run's directory, carries a sandbox's mark, or runs under its uid. */
async function processesOf(root: string, sandboxes: readonly OwnerRecord[], before: ReadonlySet<number>): Promise<string[]> {
  const marks = new Set(sandboxes.map(({ mark }) => `${SANDBOX_MARK}=${mark}`));
  const uids = new Map(sandboxes.flatMap(({ uid }) => (uid === null ? [] : [[uid.number, uid.lock] as const])));
  const found: string[] = [];
  for (const pid of allPids()) {
    if (pid === process.pid || before.has(pid)) continue;
    const facts = factsOf(pid);
    if (facts === null) continue;
    const words = readProc(pid, "cmdline") ?? "";
    const environment = readProc(pid, "environ") ?? "";
    const ours =
      [words, environment, workingDirectory(pid)].some((text) => names(text, root)) ||
      environment.split("\0").some((entry) => marks.has(entry)) ||
      (uids.has(facts.uid) && !(await isHeld(uids.get(facts.uid)!)));
    if (ours) found.push(`${pid}: ${words.replaceAll("\0", " ").slice(0, 120)}`);
  }
  return found;
}

/** Not where it names a neighbour whose name begins alike: several runs may go on at once. */
function names(text: string, path: string): boolean {
  for (let at = text.indexOf(path); at !== -1; at = text.indexOf(path, at + 1)) {
    if (!/[\w.-]/.test(text.charAt(at + path.length))) return true;
  }
  return false;
}

function workingDirectory(pid: number): string {
  try {
    return readlinkSync(`/proc/${pid}/cwd`);
  } catch {
    return "";
  }
}

/** Locks on uids, and halves of them, that processes of the run took and left; whether a sandbox ever came of them or not. */
async function locksOf(pids: ReadonlySet<number>): Promise<string[]> {
  const directory = join(DEFAULT_RUNTIME_ROOT, "uids");
  const found: string[] = [];
  for (const name of namesIn(directory)) {
    const path = join(directory, name);
    const holder = await readHolder(path);
    if (holder !== null && pids.has(holder.pid) && !isAlive(holder)) found.push(path);
    else if (pids.has(Number(/^\d+\.(\d+)\./.exec(name)?.[1]))) found.push(path);
  }
  return found;
}

async function isHeld(lock: string): Promise<boolean> {
  const holder = await readHolder(lock);
  return holder !== null && isAlive(holder);
}

function socketsBelow(root: string): string[] {
  return readdirSync(root, { recursive: true, encoding: "utf8" }).filter((path) => {
    try {
      return lstatSync(join(root, path)).isSocket() || basename(path).endsWith(".sock");
    } catch {
      return false;
    }
  });
}
