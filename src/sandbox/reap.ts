// SPDX-License-Identifier: Apache-2.0
import { mkdir } from "node:fs/promises";
import { basename, isAbsolute, join } from "node:path";
import { isAlive } from "../host/process.ts";
import { takeLockFile } from "../host/lock-file.ts";
import { killGroups, processesInGroups, removeGroups } from "./cgroup.ts";
import { removeTree } from "./directories.ts";
import { endHostProcesses } from "./host-process.ts";
import { listOwnerRecords, recordsDir, removeOwnerRecord, type OwnerRecord } from "./owner-record.ts";
import { processesInBubblewrap } from "./bubblewrap-process.ts";
import { killUntilGone } from "./processes.ts";

const END_MS = 5000;

export interface ReapedSandbox {
  record: OwnerRecord;
  /** Null = nothing of it is left. Otherwise its record stays for the next time. */
  error: string | null;
}

/**
 * Ends and removes the sandboxes recorded under `stateDir` whose owner process is dead; a living owner's are never
 * touched. One reaper at a time: while another one is at work the answer is empty. Owners of another host count as
 * alive.
 */
export async function reapDead(stateDir: string): Promise<ReapedSandbox[]> {
  await mkdir(recordsDir(stateDir), { recursive: true, mode: 0o700 });
  const lock = await takeLockFile(join(recordsDir(stateDir), ".reaping"));
  if (!lock.held) return [];
  try {
    const reaped: ReapedSandbox[] = [];
    for (const record of await listOwnerRecords(stateDir)) {
      if (!isAlive(record.owner.process)) reaped.push({ record, error: await reap(stateDir, record) });
    }
    return reaped;
  } finally {
    await lock.release();
  }
}

async function reap(stateDir: string, record: OwnerRecord): Promise<string | null> {
  const { id, directory, mark, cgroups = [] } = record;
  const foreign = [directory, ...cgroups].find((path) => !isAbsolute(path) || basename(path) !== `${id}.${mark}`);
  if (foreign !== undefined) return `its record names ${foreign}, which is not a sandbox's directory`;
  const error = (await endProcesses(record))
    ? ((await removeGroups(cgroups)) ?? (await removeTree(directory)))
    : "its processes did not end";
  if (error === null) await removeOwnerRecord(stateDir, id);
  return error;
}

/** False when something of the sandbox still runs. */
export async function endProcesses(record: OwnerRecord): Promise<boolean> {
  return record.provider === "host" ? endHostProcesses(record.mark, null) : endBubblewrap(record);
}

/**
 * bwrap dies with its owner, except when that was killed within milliseconds of a launch: then bwrap's child goes on,
 * or waits for ever. Only the holder of a uid's lock may kill under it: since its owner died, the uid may serve another
 * sandbox.
 */
async function endBubblewrap({ mark, uid, cgroups = [] }: OwnerRecord): Promise<boolean> {
  const lock = uid === null ? null : await takeLockFile(uid.lock);
  const ours = uid !== null && lock?.held === true ? uid.number : null;
  killGroups(cgroups);
  const gone = await killUntilGone(() => [...processesInBubblewrap(mark, ours), ...processesInGroups(cgroups)], END_MS);
  if (lock?.held === true) await lock.release();
  return gone;
}
