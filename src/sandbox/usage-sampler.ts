// SPDX-License-Identifier: Apache-2.0
import { cpuMsOf, factsOf, treeOf } from "./processes.ts";
import type { SandboxUsage } from "./types.ts";

const FIRST_SAMPLE_MS = 200;
const SAMPLE_EVERY_MS = 1000;

/**
 * Measures a process tree from outside, through /proc, about once a second: without cgroups nothing adds it up for
 * us. So up to the last second is missing, and a command shorter than the first sample has no numbers at all (null).
 */
export class UsageSampler {
  readonly #startedAt = performance.now();
  #endedAt: number | null = null;
  #cpuMs = 0;
  #peakBytes = 0;
  #sampled = false;
  #timer: NodeJS.Timeout | null = null;

  /** `root` is the pid whose tree is measured. */
  watch(root: number): void {
    const sample = (): void => {
      this.#sample(treeOf(root));
      this.#timer = setTimeout(sample, SAMPLE_EVERY_MS).unref();
    };
    this.#timer ??= setTimeout(sample, FIRST_SAMPLE_MS).unref();
  }

  end(): void {
    this.#endedAt ??= performance.now();
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  read(): Omit<SandboxUsage, "oom_killed" | "memory_limit_reached"> {
    return {
      wall_ms: Math.round((this.#endedAt ?? performance.now()) - this.#startedAt),
      cpu_ms: this.#sampled ? this.#cpuMs : null,
      peak_memory_bytes: this.#sampled ? this.#peakBytes : null,
    };
  }

  #sample(pids: number[]): void {
    const living = pids.map(factsOf).filter((facts) => facts !== null);
    if (living.length === 0) return;
    this.#sampled = true;
    const cpuMs = living.reduce((sum, { pid }) => sum + cpuMsOf(pid), 0);
    const rssBytes = living.reduce((sum, facts) => sum + facts.rssBytes, 0);
    this.#cpuMs = Math.max(this.#cpuMs, cpuMs);
    // One process's own high-water mark also shows a peak between two samples.
    this.#peakBytes = Math.max(this.#peakBytes, rssBytes, ...living.map((facts) => facts.peakBytes));
  }
}
