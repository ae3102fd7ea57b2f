// SPDX-License-Identifier: Apache-2.0
import { activationIdSchema } from "../contract/identity.ts";
import type { Status } from "../contract/result.ts";
import { findActivations, type FoundActivation } from "../queue/find-activation.ts";
import { keys } from "../queue/names.ts";
import { inPipeline } from "../queue/pipeline.ts";
import type { Queues } from "../queue/queues.ts";
import { readRow } from "../queue/run-row.ts";
import { phaseOf, readRecords, type Phase, type RolloutRecord } from "./record.ts";

/** Where a rollout is with its resources server. */
export interface RolloutNow {
  state: Phase | "ended";
  /** Number of the attempt that it is about. */
  attempt: number;
  /** Attempts that failed, and counted. */
  failed_attempts: number;
  /** Tries of the verification, or of the close, that failed so far. */
  failed_tries: number;
  /** ISO 8601: since when the server has been out of reach. */
  unreachable_since: string | null;
  /** Of one that is over: as it was scored then; null = it was not. */
  reward: number | null;
}

/** An activation, which may be that of a rollout: its state is the rollout's then, "ended" when that is over. */
export interface KnownActivation extends FoundActivation {
  rollout: RolloutNow | null;
}

/** Like {@link findActivations}, with rollouts that have no activation yet, or whose activation has ended and is to be verified. */
export async function findKnown(queues: Queues, activationIds: readonly string[]): Promise<KnownActivation[]> {
  const possible = activationIds.filter((id) => activationIdSchema.safeParse(id).success);
  // The rollouts first: one that ends in between is seen as it was, and looked at again by whoever waits for it.
  const records = await readRecords(queues, possible);
  const found = await findActivations(queues, activationIds);
  const ends = await endsOf(queues, [...records.values()]);
  return found.map((each) => {
    const record = records.get(each.activation_id);
    return record === undefined ? { ...each, rollout: null } : withRollout(each, record, ends.get(each.activation_id), Date.now());
  });
}

interface End {
  status: Status | null;
  reward: number | null;
}

/** How those that are over ended, as their runs' rows have it. */
async function endsOf({ redis }: Queues, records: readonly RolloutRecord[]): Promise<Map<string, End>> {
  const over = records.filter(({ state }) => state === "ended");
  if (over.length === 0) return new Map();
  const rows = (await inPipeline(redis, (pipeline) => {
    for (const { activation_id, run_id } of over) pipeline.hget(keys.rows(run_id), activation_id);
  })) as (string | null)[];
  return new Map(
    over.map(({ activation_id }, index) => {
      const row = rows[index] == null ? null : readRow(rows[index]);
      return [activation_id, { status: row?.status ?? null, reward: row?.reward ?? null }];
    }),
  );
}

/** Pure. `now` in ms since 1970. */
export function withRollout(found: FoundActivation, record: RolloutRecord, end: End | undefined, now: number): KnownActivation {
  const phase = phaseOf(record);
  // Queued again by itself since: a rollout no more.
  if (phase === "ended" && found.generation > record.generation) return { ...found, rollout: null };
  const rollout: RolloutNow = {
    state: phase,
    attempt: record.attempt,
    failed_attempts: record.counted,
    failed_tries: record.tries,
    unreachable_since: record.unreachable_since === null ? null : new Date(record.unreachable_since).toISOString(),
    reward: phase === "ended" ? (end?.reward ?? null) : null,
  };
  const isInQueue = found.generation === record.generation && found.state !== "unknown";
  if (phase === "activation" && isInQueue && found.state !== "ended") return { ...found, rollout };
  const waits = record.not_before > now;
  return {
    ...found,
    generation: record.generation,
    run_id: record.run_id,
    task_id: record.task_id,
    state: stateOf(phase, waits, isInQueue),
    status: phase === "ended" ? (end?.status ?? found.status) : null,
    attempt: phase === "verifying" || phase === "closing" ? record.attempt : null,
    worker_id: null,
    due_at: waits && phase !== "ended" ? new Date(record.not_before).toISOString() : null,
    cancel: record.cancel ?? found.cancel,
    rollout,
  };
}

function stateOf(phase: Phase | "ended", waits: boolean, isInQueue: boolean): FoundActivation["state"] {
  switch (phase) {
    case "waiting":
    case "seeding":
      return waits ? "delayed" : "waiting";
    case "activation":
      return isInQueue ? "committing" : "waiting"; // has just ended, or is about to be queued
    case "verifying":
    case "closing":
      return "committing";
    case "ended":
      return "ended";
    default:
      return phase satisfies never;
  }
}
