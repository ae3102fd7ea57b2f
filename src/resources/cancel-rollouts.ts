// SPDX-License-Identifier: Apache-2.0
import type { CancelMark } from "../activation/ports.ts";
import type { Queues } from "../queue/queues.ts";
import { changeRollout, readRollout, stepJobId, type RolloutRecord } from "./record.ts";

/**
 * Notes in the records of rollouts that they are to end: no further session is opened for them. Ids that are no rollouts, and those that have
 * ended, are passed over. Activations of theirs are cancelled by whoever calls this. Answers those that had not ended, by their activation.
 */
export async function cancelRollouts(
  queues: Queues,
  activationIds: readonly string[],
  mark: CancelMark,
): Promise<Map<string, RolloutRecord>> {
  const records = await Promise.all(activationIds.map((id) => cancelRollout(queues, id, mark)));
  return new Map(records.flatMap((record) => (record === null ? [] : [[record.activation_id, record] as const])));
}

async function cancelRollout(queues: Queues, activationId: string, mark: CancelMark): Promise<RolloutRecord | null> {
  for (;;) {
    const kept = await readRollout(queues, activationId);
    if (kept === null || kept.record.state === "ended") return null;
    if (kept.record.cancel !== null) return kept.record;
    const record = { ...kept.record, cancel: mark };
    if (!(await changeRollout(queues, kept, record))) continue;
    await wakeNow(queues, record);
    return record;
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
