// SPDX-License-Identifier: Apache-2.0
import { access, constants, mkdir } from "node:fs/promises";
import { hasErrno, messageOf, RollcallError } from "../errors.ts";

/**
 * Makes a directory and its parents, those that are new for this user only unless `mode` says otherwise, or finds it there. Throws RollcallError "directory_unusable",
 * `what` being its name for people and `fix` what to do, when something else is in its place or it cannot be written to.
 */
export async function makeDirectory(
  path: string,
  { what, fix, mode = 0o700 }: { what: string; fix: string; mode?: number },
): Promise<void> {
  try {
    await mkdir(path, { recursive: true, mode });
    await access(path, constants.W_OK | constants.X_OK);
  } catch (error) {
    throw new RollcallError("directory_unusable", `cannot use ${path} as ${what}: ${whyUnusable(error)}; ${fix}`, { cause: error });
  }
}

/** Why a path cannot be used as a directory, in words. */
export function whyUnusable(error: unknown): string {
  if (hasErrno(error, "EACCES") || hasErrno(error, "EPERM")) return "permission denied (not writable)";
  if (hasErrno(error, "EROFS")) return "its file system is read-only (not writable)";
  if (hasErrno(error, "ENOTDIR") || hasErrno(error, "EEXIST")) return "a part of the path is a file, not a directory";
  if (hasErrno(error, "ENOSPC")) return "the disk is full";
  return messageOf(error);
}
