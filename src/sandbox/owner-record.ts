// SPDX-License-Identifier: Apache-2.0
import { mkdir, readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { hasErrno } from "../errors.ts";
import { createOnly } from "../host/files.ts";
import type { SandboxProviderName, SandboxSpec } from "./types.ts";

/**
 * What a sandbox leaves on disk for a reaper: `<stateDir>/sandboxes/<id>.json`, written before anything else exists,
 * removed after everything else is proven gone.
 */
export interface OwnerRecord {
  id: string;
  provider: SandboxProviderName;
  owner: SandboxSpec["owner"];
  /** The sandbox's directory, `<id>.<mark>`. */
  directory: string;
  /** Random; in the environment of its processes. */
  mark: string;
  /** Its own uid and the lock file that keeps others off it; null when it runs under the worker's uid. */
  uid: { number: number; lock: string } | null;
  /** Directories of its control group; absent in records of earlier versions. */
  cgroups?: readonly string[];
}

/** False when a sandbox of that id is recorded already. */
export async function writeOwnerRecord(stateDir: string, record: OwnerRecord): Promise<boolean> {
  await mkdir(recordsDir(stateDir), { recursive: true, mode: 0o700 });
  return createOnly(recordPath(stateDir, record.id), `${JSON.stringify(record)}\n`, 0o600);
}

export async function removeOwnerRecord(stateDir: string, id: string): Promise<void> {
  await rm(recordPath(stateDir, id), { force: true });
}

/** All sandboxes that are recorded under this state directory, of living and of dead owners; unreadable files are left out. */
export async function listOwnerRecords(stateDir: string): Promise<OwnerRecord[]> {
  const names = await readdir(recordsDir(stateDir)).catch((error: unknown) => {
    if (hasErrno(error, "ENOENT")) return [];
    throw error;
  });
  const records: OwnerRecord[] = [];
  for (const name of names) {
    if (!name.endsWith(".json") || name.startsWith(".")) continue;
    try {
      records.push(JSON.parse(await readFile(join(recordsDir(stateDir), name), "utf8")) as OwnerRecord);
    } catch {
      // removed meanwhile, or not written by us
    }
  }
  return records;
}

export function recordsDir(stateDir: string): string {
  return join(stateDir, "sandboxes");
}

function recordPath(stateDir: string, id: string): string {
  return join(recordsDir(stateDir), `${id}.json`);
}
