// SPDX-License-Identifier: Apache-2.0
import { randomInt } from "node:crypto";
import { join } from "node:path";
import { RollcallError } from "../errors.ts";
import { takeLockFile } from "../host/lock-file.ts";
import { processesOfUid } from "./processes.ts";

/** Uids (and gids of the same number) that belong to nobody on this host; `first` and how many follow. */
export interface UidRange {
  first: number;
  count: number;
}

/** Outside of what systemd, useradd, subuid and container runtimes hand out. */
export const DEFAULT_UID_RANGE: UidRange = { first: 1_900_000_000, count: 4096 };

export interface UidLease {
  uid: number;
  lock: string;
  release: () => Promise<void>;
}

/**
 * Leases a uid that no other sandbox of this host has: one lock file each in `directory`, shared by all root workers;
 * a dead owner's is taken over. A uid under which anything still runs is passed over. Throws "sandbox_failed" when
 * all are taken.
 *
 * The start is random: where pid 1 does not reap, every ended sandbox leaves one zombie, and zombies count against
 * the process limit of their uid, so the same uid must not come again and again.
 */
export async function leaseUid(directory: string, range: UidRange): Promise<UidLease> {
  const start = randomInt(range.count);
  for (let step = 0; step < range.count; step += 1) {
    const uid = range.first + ((start + step) % range.count);
    const lock = join(directory, String(uid));
    const attempt = await takeLockFile(lock);
    if (!attempt.held) continue;
    if (processesOfUid(uid).length === 0) return { uid, lock, release: attempt.release };
    await attempt.release();
  }
  throw new RollcallError(
    "sandbox_failed",
    `all ${range.count} uids from ${range.first} on are in use (${directory}): run fewer activations at once, or widen the uid range`,
  );
}
