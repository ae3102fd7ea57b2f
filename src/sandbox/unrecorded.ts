// SPDX-License-Identifier: Apache-2.0
import { lstat, readdir, rm } from "node:fs/promises";
import { basename, join } from "node:path";
import { hasErrno } from "../errors.ts";
import { temporaryWriter } from "../host/files.ts";
import type { Leftover } from "../host/leftover.ts";
import { readHolder, takeLockFile } from "../host/lock-file.ts";
import { isAlive, processIdentity } from "../host/process.ts";
import { removeGroups } from "./cgroup.ts";
import { removeTree } from "./directories.ts";
import { groupsCalled } from "./find-cgroups.ts";
import { listOwnerRecords, recordsDir } from "./owner-record.ts";
import { processesOfUid } from "./processes.ts";
import { abandonedBuilds } from "./runtime-copy.ts";

/** Such a file is there for milliseconds. */
const ABANDONED_MS = 3_600_000;

/**
 * What dead workers left that no owner record tells of: they were killed before it was written, or it is gone. `sharedRoot`:
 * what all root workers share; null for others. Nothing of it belongs to a living process.
 */
export async function* unrecordedLeftovers(stateDir: string, sharedRoot: string | null): AsyncGenerator<Leftover, undefined> {
  yield* deadFiles(recordsDir(stateDir), (name) => name.startsWith("."));
  if (sharedRoot === null) return undefined;
  const recorded = new Set((await listOwnerRecords(stateDir)).map(({ directory }) => directory));
  const uids = join(sharedRoot, "uids");
  yield* strayDirectories(join(sharedRoot, "sandboxes"), uids, recorded);
  yield* deadUidLocks(uids);
  yield* deadFiles(uids, (name) => name.includes("."));
  for (const path of await abandonedBuilds(join(sharedRoot, "runtimes")).catch(noneWhenMissing)) {
    yield { kind: "runtime_build", what: path, why: "its worker is dead", remove: () => removeTree(path) };
  }
  return undefined;
}

/**
 * Directories whose records are gone, e.g. because the state directory did not outlive a reboot and they did. A sandbox holds
 * the lock of its uid as long as its directory is there: where nobody does, the directory is nobody's, and so is the control
 * group of the same name.
 */
async function* strayDirectories(directory: string, uids: string, recorded: ReadonlySet<string>): AsyncGenerator<Leftover, undefined> {
  for (const path of await pathsIn(directory)) {
    const info = await lstat(path).catch(() => null);
    if (recorded.has(path) || info === null || info.uid === 0 || (await isHeld(join(uids, String(info.uid))))) continue;
    yield {
      kind: "sandbox_directory",
      what: path,
      why: `no worker holds its uid ${info.uid}`,
      remove: () =>
        underUid(
          join(uids, String(info.uid)),
          info.uid,
          async () => (await removeGroups(await groupsCalled(basename(path)))) ?? (await removeTree(path)),
        ),
    };
  }
  return undefined;
}

/** Of workers that were killed between leasing a uid and giving it back, whether a sandbox had come of it or not. */
async function* deadUidLocks(uids: string): AsyncGenerator<Leftover, undefined> {
  for (const path of await pathsIn(uids)) {
    const uid = /\/(\d+)$/.exec(path)?.[1];
    if (uid === undefined || (await isHeld(path))) continue;
    yield {
      kind: "uid_lock",
      what: path,
      why: "its worker is dead",
      remove: () => underUid(path, Number(uid), () => Promise.resolve(null)),
    };
  }
  return undefined;
}

/** Temporary files of records and lock files, of a process that was killed while it wrote one. */
async function* deadFiles(directory: string, isTemporary: (name: string) => boolean): AsyncGenerator<Leftover, undefined> {
  for (const path of await pathsIn(directory)) {
    const name = basename(path);
    if (!isTemporary(name) || name === ".reaping") continue; // a lock: taken over by the next reaper
    const info = await lstat(path).catch(() => null);
    if (info?.isFile() !== true || !(writerIsDead(name) || Date.now() - info.mtimeMs >= ABANDONED_MS)) continue;
    yield {
      kind: "temporary_file",
      what: path,
      why: "whoever wrote it did not finish it",
      remove: () => rm(path, { force: true }).then(() => null, String),
    };
  }
  return undefined;
}

/** Half of a uid's lock, or of a record, names the process that writes it, which is of this host. */
function writerIsDead(name: string): boolean {
  const pid = temporaryWriter(name) ?? Number(/^\d+\.(\d+)\.[0-9a-f]+$/.exec(name)?.[1]);
  return !Number.isNaN(pid) && processIdentity(pid) === null;
}

/** Acts while nobody else can lease the uid, and only where nothing runs under it. */
async function underUid(lockPath: string, uid: number, act: () => Promise<string | null>): Promise<string | null> {
  const lock = await takeLockFile(lockPath);
  if (!lock.held) return "somebody uses its uid now";
  try {
    const running = processesOfUid(uid);
    if (running.length > 0) return `processes run under uid ${uid}: ${running.slice(0, 5).join(", ")}`;
    return await act();
  } finally {
    await lock.release();
  }
}

/** False when there is no such lock. One that cannot be read counts as held, as it does for whoever wants the uid. */
async function isHeld(lockPath: string): Promise<boolean> {
  if ((await lstat(lockPath).catch(() => null)) === null) return false;
  const holder = await readHolder(lockPath);
  return holder === null || isAlive(holder);
}

async function pathsIn(directory: string): Promise<string[]> {
  return (await readdir(directory).catch(noneWhenMissing)).map((name) => join(directory, name));
}

function noneWhenMissing(error: unknown): string[] {
  if (hasErrno(error, "ENOENT")) return [];
  throw error;
}
