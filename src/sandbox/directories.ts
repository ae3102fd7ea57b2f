// SPDX-License-Identifier: Apache-2.0
import { execFile } from "node:child_process";
import { chown, lstat, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { hasErrno, messageOf } from "../errors.ts";
import type { SandboxPaths } from "./types.ts";

const run = promisify(execFile);
/** A tree of 100,000 files on a busy disk takes longer than ten seconds (seen). */
const TREE_TIMEOUT_MS = 30_000;
/** After SIGKILL: one that waits for a disk in the kernel is left to it. */
const KILLED_MS = 1_000;

/** A uid and gid that files are given to; null keeps the worker's own. */
export type FileOwner = { uid: number; gid: number } | null;

/** Where things lie in a sandbox's directory. CODEX_HOME is inside the home, as it is for a person. */
export function pathsIn(directory: string): SandboxPaths {
  const home = join(directory, "home");
  return { workdir: join(directory, "work"), home, codexHome: join(home, ".codex"), tmp: join(directory, "tmp") };
}

/**
 * Makes the directory of one sandbox, private to `owner`. Its parent must exist and be traversable by that owner.
 * Throws EEXIST when the directory is there already, which then is not ours to remove.
 */
export async function makeSandboxDirectory(directory: string, owner: FileOwner): Promise<void> {
  await mkdir(directory, { mode: 0o700 });
  const { workdir, home, codexHome, tmp } = pathsIn(directory);
  for (const path of [workdir, home, codexHome, tmp]) {
    await mkdir(path, { mode: 0o700 });
    if (owner !== null) await chown(path, owner.uid, owner.gid);
  }
  if (owner !== null) await chown(directory, owner.uid, owner.gid);
}

/**
 * Gives an unprivileged worker back its rights on what the sandboxed program left, whatever modes that set. Links are
 * not followed. chmod(1) and rm(1), because a hostile tree can be deeper than a path may be long.
 */
export async function restoreAccess(directory: string, rights: "u+rX" | "u+rwX"): Promise<void> {
  await runOnTree("/bin/chmod", ["-R", rights, "--", directory]);
}

/**
 * Removes a tree that a hostile program filled, and looks whether it is gone; the reason when it is not. rm(1) walks
 * by directory descriptors: neither a link put in its way nor an endless depth leads it astray.
 */
export async function removeTree(directory: string): Promise<string | null> {
  try {
    if (process.getuid?.() !== 0) await restoreAccess(directory, "u+rwX").catch(() => undefined); // then rm says why
    await runOnTree("/bin/rm", ["-rf", "--", directory]);
    await lstat(directory);
    return `${directory} is still there`;
  } catch (error) {
    return hasErrno(error, "ENOENT") ? null : `${directory} could not be removed: ${messageOf(error).slice(0, 500)}`;
  }
}

async function runOnTree(file: string, args: readonly string[]): Promise<void> {
  const patience = new AbortController();
  const late = sleep(TREE_TIMEOUT_MS + KILLED_MS, undefined, { signal: patience.signal }).then(() => {
    throw new Error(`${file} does not end`);
  });
  late.catch(() => undefined); // aborted
  try {
    await Promise.race([run(file, args, { env: {}, timeout: TREE_TIMEOUT_MS, killSignal: "SIGKILL" }), late]);
  } finally {
    patience.abort();
  }
}
