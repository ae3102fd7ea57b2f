// SPDX-License-Identifier: Apache-2.0
import type { CancelMark } from "../activation/ports.ts";
import type { Queues } from "../queue/queues.ts";
import { changeRollout, readRollout, stepJobId, type RolloutRecord } from "./record.ts";

/**
 * Notes in the records of rollouts that they are to end: no further session is opened for them. Ids that are no rollouts, and those that have
 * ended, are passed over. Activations of theirs are cancelled by whoever calls this.
 */
export async function cancelRollouts(queues: Queues, activationIds: readonly string[], mark: CancelMark): Promise<void> {
  await Promise.all(activationIds.map((id) => cancelRollout(queues, id, mark)));
}

async function cancelRollout(queues: Queues, activationId: string, mark: CancelMark): Promise<void> {
  for (;;) {
    const kept = await readRollout(queues, activationId);
    if (kept === null || kept.record.state === "ended" || kept.record.cancel !== null) return;
    if (!(await changeRollout(queues, kept, { ...kept.record, cancel: mark }))) continue;
    await wakeNow(queues, kept.record);
    return;
  }
}

/** What waits for a place, or for its next attempt, need not wait any longer. */
async function wakeNow({ steps }: Queues, record: RolloutRecord): Promise<void> {
  for (const what of ["begin", `ended-${record.generation - 1}`, `ended-${record.generation}`]) {
    await steps
      .getBackend()
      .promote(stepJobId(record, what))
      .catch(() => undefined); // not delayed: it is at work, or there is none
  }
}
