// SPDX-License-Identifier: Apache-2.0
import { readFileSync } from "node:fs";
import { hostname } from "node:os";

/**
 * One process, named so that a reused pid is never taken for it: pid, start time (clock ticks since boot, field 22 of
 * /proc/<pid>/stat; "" where there is no /proc), the boot it belongs to, and its host.
 */
export interface ProcessIdentity {
  readonly pid: number;
  readonly start_time: string;
  readonly boot_id: string;
  readonly host: string;
}

/** Identity of a running process, by default this one; null when no such process lives (a zombie does not live). */
export function processIdentity(pid: number = process.pid): ProcessIdentity | null {
  if (process.platform !== "linux") {
    return signalReaches(pid) ? { pid, start_time: "", boot_id: "", host: hostname() } : null;
  }
  const stat = readStat(pid);
  return stat === null || stat.state === "Z" || stat.state === "X"
    ? null
    : { pid, start_time: stat.startTime, boot_id: bootId(), host: hostname() };
}

/**
 * Whether that very process still lives on this host. Another host's process counts as alive: we cannot know, and
 * must not take what may be in use.
 */
export function isAlive(identity: ProcessIdentity): boolean {
  if (identity.host !== hostname()) return true;
  const now = processIdentity(identity.pid);
  return now !== null && now.start_time === identity.start_time && now.boot_id === identity.boot_id;
}

/**
 * State letter and start time from /proc/<pid>/stat. Zombies matter: where pid 1 does not reap, `kill -0` calls a dead
 * orphan alive for ever.
 */
function readStat(pid: number): { state: string; startTime: string } | null {
  let text: string;
  try {
    text = readFileSync(`/proc/${pid}/stat`, "latin1");
  } catch {
    return null; // no such process
  }
  // The command name (field 2) may hold spaces and parentheses: count from behind the last one.
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  return { state: fields[0] ?? "", startTime: fields[19] ?? "" };
}

function bootId(): string {
  try {
    return readFileSync("/proc/sys/kernel/random/boot_id", "latin1").trim();
  } catch {
    return "";
  }
}

function signalReaches(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
