// SPDX-License-Identifier: Apache-2.0
import { link, readFile, rename, rm, writeFile } from "node:fs/promises";
import { randomBytes } from "node:crypto";
import { hasErrno } from "../errors.ts";
import { isAlive, processIdentity, type ProcessIdentity } from "./process.ts";

export type LockAttempt =
  | { held: true; tookOverFrom: ProcessIdentity | null; release: () => Promise<void> }
  | { held: false; holder: ProcessIdentity | null };

/**
 * Takes an exclusive lock file that names its holder. A lock whose holder is dead is taken over; one of a live process
 * is not (`holder` says whose it is; null when it vanished or could not be read just now: try again). The lock is a
 * complete file from the first moment (link(2)), so a reader never sees it half written.
 */
export async function takeLockFile(path: string): Promise<LockAttempt> {
  const own = processIdentity();
  if (own === null) throw new Error("this process is not listed in /proc");
  const temporary = `${path}.${own.pid}.${randomBytes(6).toString("hex")}`;
  await writeFile(temporary, JSON.stringify(own), { mode: 0o600, flag: "wx" });
  try {
    let tookOverFrom: ProcessIdentity | null = null;
    for (;;) {
      try {
        await link(temporary, path);
        return { held: true, tookOverFrom, release: () => releaseLockFile(path, own) };
      } catch (error) {
        if (!hasErrno(error, "EEXIST")) throw error;
      }
      const holder = await readHolder(path);
      if (holder === null || isAlive(holder)) return { held: false, holder };
      if (!(await removeDead(path, holder))) return { held: false, holder: await readHolder(path) };
      tookOverFrom = holder;
    }
  } finally {
    await rm(temporary, { force: true });
  }
}

/** The process named in a lock file; null when there is none or it cannot be read. */
export async function readHolder(path: string): Promise<ProcessIdentity | null> {
  try {
    return JSON.parse(await readFile(path, "utf8")) as ProcessIdentity;
  } catch {
    return null; // gone, or not ours to understand; the caller treats it as not free
  }
}

/**
 * Moves the dead holder's file aside before deleting it, and looks again at what was moved: of two that saw the same
 * dead holder, the slower one must not delete the faster one's new lock.
 */
async function removeDead(path: string, dead: ProcessIdentity): Promise<boolean> {
  const aside = `${path}.dead.${randomBytes(6).toString("hex")}`;
  try {
    await rename(path, aside);
  } catch (error) {
    if (hasErrno(error, "ENOENT")) return true;
    throw error;
  }
  const moved = await readHolder(aside);
  const wasDead = moved !== null && moved.pid === dead.pid && moved.start_time === dead.start_time;
  if (!wasDead) await link(aside, path).catch(() => undefined); // a third took it meanwhile: then theirs stands
  await rm(aside, { force: true });
  return wasDead;
}

async function releaseLockFile(path: string, own: ProcessIdentity): Promise<void> {
  const holder = await readHolder(path);
  if (holder !== null && holder.pid === own.pid && holder.start_time === own.start_time) await rm(path, { force: true });
}
