// SPDX-License-Identifier: Apache-2.0
import { execFile } from "node:child_process";
import { closeSync, openSync, rmSync, writeSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { hasErrno } from "../../src/errors.ts";

const run = promisify(execFile);

/** A file system of its own for one directory. */
export interface SmallDisk {
  fill(): void;
  empty(): void;
  /** Unmounts it: what is on it is gone. May be called again. */
  close(): Promise<void>;
}

/** Mounts a tmpfs of `megabytes` at `path`. null with the reason when that is not allowed here. */
export async function mountSmallDisk(path: string, megabytes: number): Promise<{ disk: SmallDisk } | { disk: null; why: string }> {
  await mkdir(path, { recursive: true });
  if (process.getuid?.() !== 0) return { disk: null, why: "only root can mount a small file system" };
  try {
    await run("mount", ["-t", "tmpfs", "-o", `size=${megabytes}m,mode=0755`, "tmpfs", path]);
  } catch (error) {
    return { disk: null, why: `mounting a small file system failed: ${String(error).slice(0, 200)}` };
  }
  const filler = join(path, "_filler");
  let open = true;
  return {
    disk: {
      fill: () => fillUp(filler),
      empty: () => rmSync(filler, { force: true }),
      async close() {
        if (open) await run("umount", [path]).catch(() => run("umount", ["-l", path]));
        open = false;
      },
    },
  };
}

function fillUp(path: string): void {
  const file = openSync(path, "w");
  try {
    for (let size = 1024 * 1024; size >= 1; size = Math.floor(size / 4)) {
      const zeros = Buffer.alloc(size);
      try {
        for (;;) writeSync(file, zeros);
      } catch (error) {
        if (!hasErrno(error, "ENOSPC")) throw error;
      }
    }
  } finally {
    closeSync(file);
  }
}
