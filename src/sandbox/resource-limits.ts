// SPDX-License-Identifier: Apache-2.0
import { existsSync, readFileSync } from "node:fs";
import type { CgroupHost } from "./cgroup.ts";
import type { SandboxLimits } from "./types.ts";

const PRLIMIT = "/usr/bin/prlimit";

/** Names of the limits that control groups and {@link limitArguments} can enforce on this host, for a probe's report. */
export function enforceableLimits(uidPerActivation: boolean, cgroups: CgroupHost | null): string[] {
  const byRlimit = !existsSync(PRLIMIT) ? [] : uidPerActivation ? ["pids", "file size"] : ["file size"];
  return [...new Set([...(cgroups?.limits ?? []), ...byRlimit])];
}

/**
 * The words that go before a command to start it under resource limits; prlimit(1) replaces itself by the command,
 * so its pid stays. `disk_mb` bounds each single file. `pids` is counted per uid, so only a uid of its own makes sense
 * of it. Memory and processors need control groups (cgroup.ts). Empty where there is no prlimit.
 */
export function limitArguments(limits: SandboxLimits, uidPerActivation: boolean): string[] {
  if (!existsSync(PRLIMIT)) return [];
  const hard = readFileSync("/proc/self/limits", "latin1");
  const option = (name: string, row: string, wanted: number | undefined): string[] => {
    if (wanted === undefined) return [];
    const value = Math.min(wanted, hardLimit(hard, row)); // an unprivileged uid cannot go above it
    return [`--${name}=${value}:${value}`];
  };
  return [
    PRLIMIT,
    // 1, not 0: a core_pattern that pipes to a program of the host runs it for any limit but 1 (core(5)).
    ...option("core", "Max core file size", 1),
    ...option("nproc", "Max processes", uidPerActivation ? limits.pids : undefined),
    ...option("fsize", "Max file size", limits.disk_mb === undefined ? undefined : limits.disk_mb * 1024 * 1024),
    "--",
  ];
}

function hardLimit(table: string, row: string): number {
  const value = new RegExp(`^${row}\\s+\\S+\\s+(\\S+)`, "mu").exec(table)?.[1];
  return value === undefined || value === "unlimited" ? Number.MAX_SAFE_INTEGER : Number(value);
}
