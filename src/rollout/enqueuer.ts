// SPDX-License-Identifier: Apache-2.0
import type { SessionActivation } from "../contract/activation.ts";
import { RollcallError } from "../errors.ts";
import type { LocalCopy } from "../references/reference.ts";
import type { EnqueueAnswer, Fleet } from "./fleet.ts";
import type { WorkPlan } from "./plan.ts";
import { inputPutter } from "./put-inputs.ts";
import type { BadRow, Row } from "./task-row.ts";
import { readTasks, type TaskRow, type TaskSource } from "./tasks.ts";

/** Most activations, and about the most bytes, that are held and sent to Redis at once. */
const BATCH_COUNT = 100;
const BATCH_BYTES = 8 * 1024 * 1024;

export interface Enqueuer {
  /** Enqueues up to `count` more of the plan; answers their ids, fewer at the end of the file. Ended early by the signal. */
  next(count: number, signal: AbortSignal): Promise<string[]>;
  close(): Promise<void>;
}

/** An activation of the plan, and what a resources server is given of its row. */
interface Planned {
  activation: SessionActivation;
  forServer: Row;
}

/** Reads the task file a second time, local files included, and puts the planned activations into the queue. */
export function makeEnqueuer(
  source: TaskSource,
  plan: WorkPlan,
  fleet: Fleet,
  on: {
    badRow: (row: BadRow) => Promise<void>;
    endedBefore: (activationId: string) => Promise<boolean>;
    /** No live worker has what some activations need; told once for each kind of need. */
    noWorkerFor: (needs: string) => void;
  },
): Enqueuer {
  const rows = plannedOf(readTasks(source, "read"), plan, { badRow: on.badRow, inputs: inputPutter((copy) => fleet.putInput(copy)) });
  let left = plan.work.size;
  const told = new Set<string>();

  async function send(batch: Planned[]): Promise<void> {
    for (const again of [false, true]) {
      const part = batch.filter(({ activation: { activation_id } }) => plan.work.get(activation_id)!.again === again);
      if (part.length > 0) await sendAll(part, again);
    }
  }

  async function sendAll(batch: readonly Planned[], again: boolean): Promise<void> {
    const rows = new Map(batch.map(({ activation, forServer }) => [activation.activation_id, forServer]));
    const answers = await fleet.enqueue(
      batch.map(({ activation }) => activation),
      { again, rows },
    );
    refuseConflicts(answers);
    for (const { no_worker_for: needs } of answers) {
      if (needs !== undefined && !told.has(needs)) on.noWorkerFor(needs);
      if (needs !== undefined) told.add(needs);
    }
    const ended = new Set(answers.filter(({ outcome }) => outcome === "ended").map(({ activation_id }) => activation_id));
    // Ended without us, and its result is gone from the store: only a new generation can give one.
    const gone: Planned[] = [];
    for (const planned of batch) {
      const { activation_id } = planned.activation;
      if (ended.has(activation_id) && !(await on.endedBefore(activation_id))) gone.push(planned);
    }
    if (gone.length === 0) return;
    if (again)
      throw new RollcallError("enqueue_failed", `${gone[0]!.activation.activation_id} could not be queued again`, { exitCode: 70 });
    await sendAll(gone, true);
  }

  return {
    async next(count, signal) {
      const ids: string[] = [];
      let batch: Planned[] = [];
      let bytes = 0;
      while (ids.length < count && !signal.aborted) {
        const { value, done } = await rows.next();
        if (done === true) break;
        batch.push(value);
        ids.push(value.activation.activation_id);
        bytes += weight(value);
        if (batch.length >= BATCH_COUNT || bytes >= BATCH_BYTES) {
          await send(batch);
          batch = [];
          bytes = 0;
        }
      }
      if (batch.length > 0) await send(batch);
      left -= ids.length;
      if (ids.length < count && !signal.aborted && left > 0) {
        throw new RollcallError("tasks_changed", `${source.path} changed while it was read: ${left} tasks are no longer in it`);
      }
      return ids;
    },
    async close() {
      await rows.return(undefined);
    },
  };
}

async function* plannedOf(
  rows: AsyncGenerator<TaskRow>,
  plan: WorkPlan,
  on: { badRow: (row: BadRow) => Promise<void>; inputs: (copies: readonly LocalCopy[]) => Promise<void> },
): AsyncGenerator<Planned, undefined> {
  for await (const row of rows) {
    if (!row.ok) {
      await on.badRow(row);
      continue;
    }
    const planned = row.activations.filter(({ activation_id }) => plan.work.has(activation_id));
    if (planned.length === 0) continue;
    await on.inputs(row.inputs); // before a worker can look for them
    const { forServer } = row;
    for (const activation of planned) yield { activation, forServer };
  }
  return undefined;
}

function refuseConflicts(answers: readonly EnqueueAnswer[]): void {
  const conflicts = answers.filter(({ outcome }) => outcome === "conflict");
  const first = conflicts[0];
  if (first === undefined) return;
  const fields = first.fields === undefined || first.fields.length === 0 ? "" : ` (${first.fields.join(", ")} differ)`;
  throw new RollcallError(
    "activation_conflict",
    `${conflicts.length} activations are already in the queue with other content, first ${first.activation_id}${fields}: ` +
      (first.fields?.join() === "run_id"
        ? "they are of another run: queue them under ids of their own"
        : "start with the settings and files of the first start, or choose another --out"),
  );
}

/** About its size in bytes; placed files are most of it. */
function weight({ activation: { input, sandbox }, forServer }: Planned): number {
  const files = sandbox.files.reduce((sum, file) => sum + (file.content_base64?.length ?? 0) + (file.content?.length ?? 0), 0);
  return 2_000 + files + JSON.stringify(forServer).length + (typeof input === "string" ? input.length : JSON.stringify(input).length);
}
