// SPDX-License-Identifier: Apache-2.0
import { constants } from "node:fs";
import { mkdir, open, rm, writeFile, type FileHandle } from "node:fs/promises";
import { join, posix } from "node:path";
import type { Readable } from "node:stream";
import { hasErrno, messageOf, RollcallError } from "../errors.ts";
import type { FileOwner } from "./directories.ts";
import type { SandboxPaths } from "./types.ts";

const { O_CREAT, O_DIRECTORY, O_EXCL, O_NOFOLLOW, O_RDONLY, O_WRONLY } = constants;

/**
 * Which outside directory an inside path belongs to, and the names below it. Throws "bad_path" for what lies outside
 * of the workdir and the home, or is one of the two.
 */
export function resolveInside(path: string, inside: SandboxPaths, outside: SandboxPaths): { root: string; names: string[] } {
  const absolute = posix.resolve(inside.workdir, path);
  for (const place of ["workdir", "home"] as const) {
    const prefix = `${inside[place]}/`;
    if (absolute.startsWith(prefix) && !absolute.includes("\0")) {
      return { root: outside[place], names: absolute.slice(prefix.length).split("/") };
    }
  }
  throw new RollcallError("bad_path", `${JSON.stringify(path)} is neither in the workdir nor in the home of the sandbox`);
}

/**
 * Writes a new file below `root` (a file already there is replaced, never written into). No component is followed
 * when it is a link, also when a process changes the tree meanwhile: each is opened from the descriptor before it.
 */
export async function placeBeneath(
  root: string,
  names: readonly string[],
  body: Uint8Array | Readable,
  options: { mode: number; owner: FileOwner },
): Promise<void> {
  const fileName = names.at(-1) as string;
  let directory = await open(root, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  let at = root;
  try {
    for (const name of names.slice(0, -1)) {
      at = join(at, name);
      const next = await openDirectory(entry(directory, at, name), options.owner);
      await directory.close();
      directory = next;
    }
    at = join(at, fileName);
    await writeNew(entry(directory, at, fileName), body, options);
  } catch (error) {
    throw new RollcallError("bad_path", `${names.join("/")} could not be placed in the sandbox: ${messageOf(error)}`, { cause: error });
  } finally {
    await directory.close();
  }
}

/** openat(2), which Node has not: Linux resolves /proc/self/fd/N to the open directory itself. */
function entry(directory: FileHandle, path: string, name: string): string {
  return process.platform === "linux" ? `/proc/self/fd/${directory.fd}/${name}` : path;
}

async function openDirectory(path: string, owner: FileOwner): Promise<FileHandle> {
  const made = await mkdir(path, { mode: 0o700 }).then(
    () => true,
    (error: unknown) => {
      if (hasErrno(error, "EEXIST")) return false;
      throw error;
    },
  );
  const directory = await open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (made && owner !== null) await directory.chown(owner.uid, owner.gid);
  return directory;
}

async function writeNew(path: string, body: Uint8Array | Readable, options: { mode: number; owner: FileOwner }): Promise<void> {
  await rm(path, { force: true });
  const file = await open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
  try {
    await writeFile(file, body);
    if (options.owner !== null) await file.chown(options.owner.uid, options.owner.gid);
    await file.chmod(options.mode & 0o777);
  } finally {
    await file.close();
  }
}
