// SPDX-License-Identifier: Apache-2.0
import { randomBytes } from "node:crypto";
import { link, open, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { hasErrno } from "../errors.ts";

/**
 * Creates `path` with these bytes, durably and only if nothing is there: temporary file, fsync, link(2), fsync of the
 * directory. True when this call made it, false when somebody else had (theirs stays). rename(2) would replace it.
 */
export async function createOnly(path: string, bytes: string | Uint8Array, mode = 0o644): Promise<boolean> {
  const temporary = await writeTemporary(path, bytes, mode);
  try {
    await link(temporary, path);
  } catch (error) {
    if (hasErrno(error, "EEXIST")) return false;
    throw error;
  } finally {
    await rm(temporary, { force: true });
  }
  await syncDirectory(dirname(path));
  return true;
}

/** Writes `path` durably; a reader sees the old bytes or the new ones, never a mixture. */
export async function replaceFile(path: string, bytes: string | Uint8Array, mode = 0o644): Promise<void> {
  const temporary = await writeTemporary(path, bytes, mode);
  try {
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
  await syncDirectory(dirname(path));
}

const TEMPORARY = /^\..+\.(\d+)-[0-9a-f]{12}\.tmp$/;

/** Pid of the process that wrote a file of this name and had not put it in its place; undefined for other names. */
export function temporaryWriter(name: string): number | undefined {
  const pid = TEMPORARY.exec(name)?.[1];
  return pid === undefined ? undefined : Number(pid);
}

async function writeTemporary(path: string, bytes: string | Uint8Array, mode: number): Promise<string> {
  const temporary = join(dirname(path), `.${basename(path)}.${process.pid}-${randomBytes(6).toString("hex")}.tmp`);
  const file = await open(temporary, "wx", mode);
  try {
    await file.writeFile(bytes);
    await file.sync();
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  } finally {
    await file.close();
  }
  return temporary;
}

async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, "r");
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}
