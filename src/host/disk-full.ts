// SPDX-License-Identifier: Apache-2.0
import { hasErrno, messageOf, RollcallError } from "../errors.ts";

const MAX_CAUSES = 5;

/** Whether something failed because a disk, or this user's share of it, is full: itself or what caused it. Pure. */
export function isDiskFull(thrown: unknown): boolean {
  for (let one = thrown, depth = 0; one instanceof Error && depth < MAX_CAUSES; one = one.cause, depth++) {
    if (hasErrno(one, "ENOSPC") || hasErrno(one, "EDQUOT")) return true;
  }
  return false;
}

/** Whether a Rust program's own words say the same, or those of its SQLite. Not the bare text of the system: a server may send that of its own disk. Pure. */
export function saysDiskFull(text: string): boolean {
  return /\(os error (28|122)\)|database or disk is full/.test(text);
}

/** Does `write`. When that fails because the disk is full, throws RollcallError "disk_full" that names `place`: the system's own error of a write names none. */
export async function onDisk<T>(place: string, write: () => Promise<T>): Promise<T> {
  try {
    return await write();
  } catch (error) {
    if (!isDiskFull(error)) throw error;
    throw new RollcallError("disk_full", `the disk of ${place} is full (${messageOf(error)})`, { cause: error });
  }
}
