// SPDX-License-Identifier: Apache-2.0
import type { Leftover } from "../host/leftover.ts";
import { isAlive } from "../host/process.ts";
import { listOwnerRecords } from "./owner-record.ts";
import { reapDead } from "./reap.ts";
import { unrecordedLeftovers } from "./unrecorded.ts";

/**
 * What dead workers left of sandboxes, where `stateDir` has their records. `sharedRoot`: what all root workers share; null for
 * others. What belongs to a living process is not among it: owners are told by pid, start time and boot.
 */
export async function* sandboxLeftovers(stateDir: string, sharedRoot: string | null): AsyncGenerator<Leftover, undefined> {
  for (const { id, owner, directory } of await listOwnerRecords(stateDir)) {
    if (isAlive(owner.process)) continue;
    yield {
      kind: "sandbox",
      what: directory,
      why: `its worker (process ${owner.process.pid}) is dead; ${owner.activation_id}, attempt ${owner.attempt}`,
      async remove() {
        const reaped = (await reapDead(stateDir)).find(({ record }) => record.id === id);
        if (reaped !== undefined) return reaped.error;
        const left = (await listOwnerRecords(stateDir)).some((record) => record.id === id);
        return left ? "another reaper is at work" : null;
      },
    };
  }
  yield* unrecordedLeftovers(stateDir, sharedRoot);
  return undefined;
}
