// SPDX-License-Identifier: Apache-2.0
import { constants } from "node:fs";
import { lstat, open, readlink, realpath, type FileHandle } from "node:fs/promises";
import { join } from "node:path";

/** Either an open file, which the caller closes, or why it is not one to take. */
export type Opened = { file: FileHandle; bytes: number } | { why: string };

/**
 * Opens a regular file below `root` for reading, in a tree that a model could write: no component may be a link, and
 * FIFOs, sockets and devices are not opened. What was opened is checked, not only what its path named before, so that
 * swapping a directory for a link meanwhile gains nothing. `root` itself must be real: {@link realRoot}. Never throws.
 */
export async function openInside(root: string, relative: string): Promise<Opened> {
  const path = join(root, relative);
  let file: FileHandle | undefined;
  let refused: string;
  try {
    const before = await lstat(path);
    if (before.isSymbolicLink()) return { why: "a symbolic link" };
    if (before.isDirectory()) return { why: "a directory" };
    if (!before.isFile()) return { why: "not a regular file" };
    // NONBLOCK: a FIFO put there meanwhile must not make us wait.
    file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    const status = await file.stat();
    if (!status.isFile()) refused = "not a regular file";
    else if ((await placeOf(file, path)) !== path) refused = "reached through a symbolic link";
    else return { file, bytes: status.size };
  } catch (error) {
    refused = reason(error, relative);
  }
  await file?.close();
  return { why: refused };
}

/** The real path of a directory for {@link openInside}; null when the directory is itself a link, or is not there. */
export async function realRoot(directory: string): Promise<string | null> {
  try {
    return (await lstat(directory)).isDirectory() ? await realpath(directory) : null;
  } catch {
    return null;
  }
}

/** Where an open file is: Linux tells it of the file itself; elsewhere the path is resolved once more. */
async function placeOf(file: FileHandle, path: string): Promise<string> {
  return process.platform === "linux" ? readlink(`/proc/self/fd/${file.fd}`) : realpath(path);
}

function reason(error: unknown, relative: string): string {
  const code = error instanceof Error && "code" in error ? String(error.code) : "unknown";
  switch (code) {
    case "ENOENT":
    case "ENOTDIR":
      // Node shows bytes that are not UTF-8 as U+FFFD, and then finds no such file.
      return relative.includes("\ufffd") ? "its name is not UTF-8" : "not found";
    case "ELOOP":
      return "a symbolic link";
    case "EACCES":
    case "EPERM":
      return "not readable";
    default:
      return `cannot be opened (${code})`;
  }
}
