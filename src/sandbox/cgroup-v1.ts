// SPDX-License-Identifier: Apache-2.0
import { join } from "node:path";
import { Cgroup, CPU_PERIOD_US, cpuQuotaUs, PARENT, readCgroupNumber, type CgroupFiles, type CgroupHost } from "./cgroup.ts";
import type { SandboxLimits } from "./types.ts";

/** The kernel charges memory in pieces no larger than this before it kills. */
const LARGEST_CHARGE = 1024 * 1024;

/** The worker's own group in the hierarchy of each controller that it may make groups in. */
export type ControllerDirectories = ReadonlyMap<string, string>;

/** Groups of version 1: each controller has a hierarchy of its own. */
export function cgroupsV1(own: ControllerDirectories): CgroupHost {
  const limits = Object.entries({ memory: "memory", cpu: "cpus", pids: "pids" });
  return {
    version: 1,
    limits: limits.flatMap(([controller, limit]) => (own.has(controller) ? [limit] : [])),
    group: (name, wanted) => new Cgroup(filesOf(own, name, wanted)),
  };
}

function filesOf(own: ControllerDirectories, name: string, { memory_mb, cpus, pids }: SandboxLimits): CgroupFiles {
  const groupIn = (controller: string): string | null => {
    const directory = own.get(controller);
    return directory === undefined ? null : join(directory, PARENT, name);
  };
  const memory = groupIn("memory");
  const cpuacct = groupIn("cpuacct");
  // A group costs each launch some milliseconds: only those that measure, and those of a limit.
  const [limitedPids, limitedCpu] = [pids === undefined ? null : groupIn("pids"), cpus === undefined ? null : groupIn("cpu")];

  const settings: CgroupFiles["settings"][number][] = [];
  if (memory !== null && memory_mb !== undefined) {
    const value = String(memory_mb * 1024 * 1024);
    settings.push({ file: join(memory, "memory.limit_in_bytes"), value });
    settings.push({ file: join(memory, "memory.memsw.limit_in_bytes"), value, ifThere: true }); // with swap: no more than that
  }
  if (limitedPids !== null) settings.push({ file: join(limitedPids, "pids.max"), value: String(pids) });
  if (limitedCpu !== null && cpus !== undefined) {
    settings.push({ file: join(limitedCpu, "cpu.cfs_period_us"), value: String(CPU_PERIOD_US) });
    settings.push({ file: join(limitedCpu, "cpu.cfs_quota_us"), value: String(cpuQuotaUs(cpus)) });
  }
  const read = (directory: string | null, file: string, field?: string): number | null =>
    directory === null ? null : readCgroupNumber(directory, file, field);
  return {
    // Controllers may share a hierarchy (cpu,cpuacct).
    directories: [...new Set([memory, cpuacct, limitedPids, limitedCpu])].filter((directory) => directory !== null),
    settings,
    counters: () => {
      const nanoseconds = read(cpuacct, "cpuacct.usage");
      const peak = read(memory, "memory.max_usage_in_bytes");
      const limit = read(memory, "memory.limit_in_bytes");
      return {
        cpu_ms: nanoseconds === null ? null : nanoseconds / 1e6,
        peak_memory_bytes: peak,
        oom_kills: read(memory, "memory.oom_control", "oom_kill"),
        // memory.failcnt, which should tell, stays 0 in some kernels (seen in 6.18).
        limit_reached: peak === null || limit === null ? null : peak > limit - LARGEST_CHARGE,
      };
    },
  };
}
