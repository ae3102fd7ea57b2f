// SPDX-License-Identifier: Apache-2.0
import type { Cgroup, CgroupCounters } from "./cgroup.ts";
import type { SandboxUsage } from "./types.ts";
import { UsageSampler } from "./usage-sampler.ts";

const NOTHING_COUNTED: CgroupCounters = { cpu_ms: null, peak_memory_bytes: null, oom_kills: null, limit_reached: null };

/** Measures one command: by what the kernel counts in the sandbox's control group, else by samples. */
export class UsageMeter {
  readonly #cgroup: Cgroup | null;
  readonly #sampler = new UsageSampler();
  /** A sandbox may have run other commands before. */
  readonly #before: CgroupCounters;
  #atEnd: CgroupCounters | null = null;

  constructor(cgroup: Cgroup | null) {
    this.#cgroup = cgroup;
    this.#before = this.#count();
  }

  /** `root` is the pid whose tree is measured. */
  watch(root: number): void {
    if (this.#before.cpu_ms === null || this.#before.peak_memory_bytes === null) this.#sampler.watch(root);
  }

  /** Before the group is removed. */
  end(): void {
    this.#sampler.end();
    this.#atEnd = this.#count();
  }

  read(): SandboxUsage {
    const sampled = this.#sampler.read();
    const now = this.#atEnd ?? this.#count();
    const oomKills = since(this.#before.oom_kills, now.oom_kills);
    return {
      wall_ms: sampled.wall_ms,
      cpu_ms: since(this.#before.cpu_ms, now.cpu_ms) ?? sampled.cpu_ms,
      peak_memory_bytes: now.peak_memory_bytes ?? sampled.peak_memory_bytes,
      oom_killed: oomKills === null ? null : oomKills > 0,
      memory_limit_reached: now.limit_reached,
    };
  }

  #count(): CgroupCounters {
    return this.#cgroup?.counters() ?? NOTHING_COUNTED;
  }
}

function since(before: number | null, now: number | null): number | null {
  return before === null || now === null ? null : now - before;
}
