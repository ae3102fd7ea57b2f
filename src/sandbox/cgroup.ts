// SPDX-License-Identifier: Apache-2.0
import { readFileSync, writeFileSync } from "node:fs";
import { mkdir, rmdir, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { hasErrno, messageOf } from "../errors.ts";
import type { SandboxLimits } from "./types.ts";

/** Every sandbox's group is below a group of this name, which is below the worker's own: its limits hold for them too. */
export const PARENT = "rollcall";

/** Both versions count a quota of processor time in periods of this length. */
export const CPU_PERIOD_US = 100_000;
const CPU_LEAST_US = 1000; // the kernel takes no smaller quota

const REMOVE_MS = 2000;
const MAKE_TRIES = 5;

/** Where this worker can make control groups, in one of the kernel's two versions of them. */
export interface CgroupHost {
  readonly version: 1 | 2;
  /** Which limits are enforced, for a probe's report. */
  readonly limits: readonly string[];
  /** A group that does not exist yet. */
  group(name: string, limits: SandboxLimits): Cgroup;
}

/** What the kernel counted since the group was made; null = it does not count that here. */
export interface CgroupCounters {
  cpu_ms: number | null;
  /** With the files that the kernel keeps in memory for the group, as the limit counts. */
  peak_memory_bytes: number | null;
  /** Processes that the kernel killed for memory, whether this group or the whole host was short of it. */
  oom_kills: number | null;
  /** This group's own memory limit was reached. */
  limit_reached: boolean | null;
}

/** What differs between the versions; the rest is {@link Cgroup}. */
export interface CgroupFiles {
  /** One for each hierarchy (version 1), or just one. */
  directories: readonly string[];
  /** File and value, in this order. `ifThere`: not every kernel has the file. */
  settings: readonly { file: string; value: string; ifThere?: boolean }[];
  /** Readies the parent of `directories` for children. */
  prepareParent?: (parent: string) => Promise<void>;
  counters: () => CgroupCounters;
}

/** The control group of one sandbox: nobody inside can leave it or change it, since no cgroup file is mounted there. */
export class Cgroup {
  readonly #files: CgroupFiles;

  constructor(files: CgroupFiles) {
    this.#files = files;
  }

  get directories(): readonly string[] {
    return this.#files.directories;
  }

  /** Throws what the kernel says; the caller then calls {@link remove}. */
  async make(): Promise<void> {
    for (const directory of this.directories) await this.#makeDirectory(directory);
    for (const { file, value, ifThere = false } of this.#files.settings) {
      await writeFile(file, value, { flag: "r+" }).catch((error: unknown) => {
        if (ifThere && hasErrno(error, "ENOENT")) return;
        throw new Error(`${file} could not be set to ${value}: ${messageOf(error)}`, { cause: error });
      });
    }
  }

  /** Moves a process in, before it has children: those follow. Takes up to 15 ms for each directory (measured). */
  async join(pid: number): Promise<void> {
    for (const directory of this.directories) await writeFile(join(directory, "cgroup.procs"), String(pid), { flag: "r+" });
  }

  counters(): CgroupCounters {
    return this.#files.counters();
  }

  remove(): Promise<string | null> {
    return removeGroups(this.directories);
  }

  /** Another sandbox's end removes an empty parent at any time. */
  async #makeDirectory(directory: string): Promise<void> {
    for (let tries = 1; ; tries += 1) {
      try {
        await mkdir(dirname(directory), { recursive: true });
        await this.#files.prepareParent?.(dirname(directory));
        return await mkdir(directory);
      } catch (error) {
        if (tries >= MAKE_TRIES || !(hasErrno(error, "ENOENT") || hasErrno(error, "ENODEV"))) throw error;
      }
    }
  }
}

/** Processor time a period, of all processors together. */
export function cpuQuotaUs(cpus: number): number {
  return Math.max(CPU_LEAST_US, Math.round(cpus * CPU_PERIOD_US));
}

/** SIGKILL at one stroke, where the kernel can (version 2): no fork escapes it. */
export function killGroups(directories: readonly string[]): void {
  for (const directory of directories) {
    try {
      writeFileSync(join(directory, "cgroup.kill"), "1", { flag: "r+" });
    } catch {
      // version 1, or gone
    }
  }
}

export function processesInGroups(directories: readonly string[]): number[] {
  const pids = directories.flatMap((directory) => (readCgroupFile(directory, "cgroup.procs") ?? "").split("\n").map(Number));
  return [...new Set(pids)].filter((pid) => pid > 0); // 0 stands for one outside of this pid namespace
}

/** Removes groups whose processes have ended, and their parent when it is empty; the reason when one stays. */
export async function removeGroups(directories: readonly string[]): Promise<string | null> {
  const deadline = performance.now() + REMOVE_MS;
  for (const directory of directories) {
    for (;;) {
      const error = await rmdir(directory).then(
        () => null,
        (error: unknown) => error,
      );
      if (error === null || hasErrno(error, "ENOENT")) break;
      if (!hasErrno(error, "EBUSY") || performance.now() > deadline) return `${directory} could not be removed: ${messageOf(error)}`;
      await sleep(10);
    }
    if (basename(dirname(directory)) === PARENT) await rmdir(dirname(directory)).catch(() => undefined); // others are in it
  }
  return null;
}

/** Null when there is no such file, or no such group any more. */
function readCgroupFile(directory: string, name: string): string | null {
  try {
    return readFileSync(join(directory, name), "latin1");
  } catch {
    return null;
  }
}

/** The number in a file of one number, or after `field` in one of several; null when it is not there. */
export function readCgroupNumber(directory: string, name: string, field?: string): number | null {
  const text = readCgroupFile(directory, name);
  if (text === null) return null;
  const digits = (field === undefined ? /^(\d+)$/mu : new RegExp(`^${field} (\\d+)$`, "mu")).exec(text)?.[1];
  return digits === undefined ? null : Number(digits);
}
