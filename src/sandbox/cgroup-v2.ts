// SPDX-License-Identifier: Apache-2.0
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Cgroup, CPU_PERIOD_US, cpuQuotaUs, PARENT, readCgroupNumber, type CgroupFiles, type CgroupHost } from "./cgroup.ts";
import type { SandboxLimits } from "./types.ts";

/**
 * Groups of version 2, below `base`: a group without processes of its own (or the root of all), else the kernel hands
 * no controller on to its children.
 */
export function cgroupsV2(base: string): CgroupHost {
  return {
    version: 2,
    limits: ["memory", "cpus", "pids"],
    group: (name, limits) => new Cgroup(filesOf(base, name, limits)),
  };
}

function filesOf(base: string, name: string, { memory_mb, cpus, pids }: SandboxLimits): CgroupFiles {
  const group = join(base, PARENT, name);
  const settings: CgroupFiles["settings"][number][] = [];
  if (memory_mb !== undefined) {
    settings.push({ file: join(group, "memory.max"), value: String(memory_mb * 1024 * 1024) });
    settings.push({ file: join(group, "memory.swap.max"), value: "0", ifThere: true });
  }
  if (pids !== undefined) settings.push({ file: join(group, "pids.max"), value: String(pids) });
  if (cpus !== undefined) {
    settings.push({ file: join(group, "cpu.max"), value: `${cpuQuotaUs(cpus)} ${CPU_PERIOD_US}` });
  }
  return {
    directories: [group],
    settings,
    prepareParent: async (parent) => {
      for (const directory of [base, parent]) await handOn(directory, ["memory", "pids", "cpu"]);
    },
    counters: () => {
      const ooms = readCgroupNumber(group, "memory.events", "oom"); // kills are counted apart: the host's count there as well
      const microseconds = readCgroupNumber(group, "cpu.stat", "usage_usec");
      return {
        cpu_ms: microseconds === null ? null : microseconds / 1000,
        peak_memory_bytes: readCgroupNumber(group, "memory.peak"), // Linux 5.19 and newer
        oom_kills: readCgroupNumber(group, "memory.events", "oom_kill"),
        limit_reached: ooms === null ? null : ooms > 0,
      };
    },
  };
}

/** Lets the children of a group use these controllers. Throws EBUSY when processes are in it. */
async function handOn(directory: string, controllers: readonly string[]): Promise<void> {
  const file = join(directory, "cgroup.subtree_control");
  const on = (await readFile(file, "latin1")).trim().split(" ");
  const missing = controllers.filter((controller) => !on.includes(controller));
  if (missing.length > 0) await writeFile(file, missing.map((controller) => `+${controller}`).join(" "), { flag: "r+" });
}
