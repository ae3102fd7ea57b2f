// SPDX-License-Identifier: Apache-2.0
import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { isAlive, processIdentity, type ProcessIdentity } from "../host/process.ts";

/** Name of the variable that marks a sandbox's processes; its value is random, and tells the sandboxed program nothing. */
export const SANDBOX_MARK = "ROLLCALL_SANDBOX_ID";

/** One living process as /proc shows it; Linux only (everything here finds nothing elsewhere). */
export interface ProcessFacts {
  pid: number;
  /** Real uid. From `status`, not from the owner of /proc/<pid>: a process can hide that by making itself undumpable. */
  uid: number;
  /** Pid in the innermost pid namespace. */
  innerPid: number;
  rssBytes: number;
  /** Highest rssBytes so far. */
  peakBytes: number;
}

/** Null when there is no such process, or only its zombie. */
export function factsOf(pid: number): ProcessFacts | null {
  const status = readProc(pid, "status");
  if (status === null || /^State:\s+[ZX]/mu.test(status)) return null;
  const number = (pattern: RegExp): number => Number(pattern.exec(status)?.[1] ?? 0);
  return {
    pid,
    uid: number(/^Uid:\s+(\d+)/mu),
    innerPid: number(/^NSpid:.*?(\d+)$/mu),
    rssBytes: number(/^VmRSS:\s+(\d+)/mu) * 1024,
    peakBytes: number(/^VmHWM:\s+(\d+)/mu) * 1024,
  };
}

/** Milliseconds of processor time of a process and of its children that it waited for; 0 when it is gone. */
export function cpuMsOf(pid: number): number {
  const stat = readProc(pid, "stat");
  if (stat === null) return 0;
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
  return ticks * 10; // /proc counts in USER_HZ, 100 a second on every architecture Node runs on
}

/** The process and all below it. Inside a pid namespace orphans go to its pid 1, so from there this is everything. */
export function treeOf(pid: number): number[] {
  const found = [pid];
  for (let index = 0; index < found.length; index += 1) found.push(...childrenOf(found[index] as number));
  return found;
}

export function childrenOf(pid: number): number[] {
  const text = readProc(pid, `task/${pid}/children`) ?? "";
  return text.split(" ").filter(Boolean).map(Number);
}

export function allPids(): number[] {
  try {
    return readdirSync("/proc").map(Number).filter(Number.isInteger);
  } catch {
    return []; // no /proc here
  }
}

/** Living processes that run under this uid, whatever namespace they are in. */
export function processesOfUid(uid: number): number[] {
  return allPids().filter((pid) => factsOf(pid)?.uid === uid);
}

/**
 * Living processes that carry a sandbox's mark in the environment they were started with: of a bubblewrap sandbox bwrap
 * and its pid 1, at every moment of its life; of a host sandbox all that did not clear theirs. Only those that this
 * user may look into. A zombie has no environment left.
 */
export function markedProcesses(mark: string): number[] {
  const entry = `${SANDBOX_MARK}=${mark}`;
  return allPids().filter((pid) => pid !== process.pid && (readProc(pid, "environ") ?? "").split("\0").includes(entry));
}

/**
 * SIGKILLs what `find` finds until it finds nothing. False when something is still there after `timeoutMs`. The
 * caller answers for `find`: it must name only what is its own.
 */
export async function killUntilGone(find: () => number[], timeoutMs: number): Promise<boolean> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const pids = find();
    if (pids.length === 0) return true;
    if (performance.now() > deadline) return false;
    for (const pid of pids) sendSignal(pid, "SIGKILL");
    await sleep(10);
  }
}

/** False when that very process still lives after `timeoutMs`. */
export async function waitUntilDead(identity: ProcessIdentity, timeoutMs: number): Promise<boolean> {
  const deadline = performance.now() + timeoutMs;
  while (isAlive(identity)) {
    if (performance.now() > deadline) return false;
    await sleep(3);
  }
  return true;
}

/** True when the signal was sent; false when there is no such process (any more). */
export function sendSignal(pid: number, signal: NodeJS.Signals): boolean {
  if (processIdentity(pid) === null) return false;
  try {
    return process.kill(pid, signal);
  } catch {
    return false;
  }
}

/** A file of /proc/<pid>; null when the process, or the right to read it, is missing. */
export function readProc(pid: number, name: string): string | null {
  try {
    return readFileSync(`/proc/${pid}/${name}`, "latin1");
  } catch {
    return null;
  }
}
