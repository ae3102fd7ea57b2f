// SPDX-License-Identifier: Apache-2.0
import type { ProgressEntry } from "../activation/ports.ts";
import { redisNow } from "../redis/clock.ts";
import { withRollout } from "../resources/find-rollouts.ts";
import { readRecords, type Phase } from "../resources/record.ts";
import { beganAt } from "./attempts.ts";
import { endsAfter } from "./ended.ts";
import { findJobs, notQueued, type ActivationState } from "./find-activation.ts";
import { keys } from "./names.ts";
import { inPipeline } from "./pipeline.ts";
import { parseEntry } from "./progress.ts";
import type { Queues } from "./queues.ts";
import { placesIn, type Place } from "./run-places.ts";
import { inPieces } from "./scan.ts";
import { bareRow, readRow, taskName, type RunRow } from "./run-row.ts";

/** One that has ended, and where to go on after it. */
export type EndedRow = { state: "ended"; cursor: string; activation_id: string } & RunRow;

/** One that has not. What only a session has is null of those that wait. */
export interface OpenRow {
  state: Exclude<ActivationState, "ended" | "unknown">;
  /** Only of a rollout that is not in the queue: where it is with its resources server. */
  rollout?: Phase;
  activation_id: string;
  generation: number;
  /** `taskset/task_id`, cut. */
  task: string | null;
  worker: string | null;
  attempt: number | null;
  /** Of the attempt; ISO 8601, by its worker's clock. */
  started_at: string | null;
  /** ISO 8601: when it is looked at again, of one that is delayed or parked. */
  due_at: string | null;
  /** What its session did last. */
  last: (Pick<ProgressEntry, "stage" | "note" | "counts"> & { at: string }) | null;
}

const PIECE = 100;

/**
 * Rows of those that ended after the cursor `after`, in the order of their ends; one may come more than once. Those that were
 * queued again since are left out, so there may be fewer than `count`; `last` says how far it looked, null = there is nothing more.
 */
export async function rowsAfter(
  queues: Queues,
  runId: string,
  { after, count }: { after: string; count: number },
): Promise<{ rows: EndedRow[]; last: string | null }> {
  const ends = await endsAfter(queues, runId, { after, count });
  if (ends.length === 0) return { rows: [], last: null };
  const ids = ends.map(({ activation_id }) => activation_id);
  const [texts, statuses] = (await inPipeline(queues.redis, (pipeline) => {
    pipeline.hmget(keys.rows(runId), ...ids);
    pipeline.hmget(keys.statuses(runId), ...ids);
  })) as [(string | null)[], (string | null)[]];
  const rows = ends.flatMap(({ id, activation_id, generation, status }, index): EndedRow[] => {
    const text = texts[index] ?? null;
    if (text === null && statuses[index] == null) return [];
    const ended_at = new Date(Number(id.split("-")[0])).toISOString();
    const row = text === null ? bareRow({ generation, status, ended_at }) : readRow(text);
    return [{ state: "ended", cursor: id, activation_id, ...row }];
  });
  return { rows, last: ends.at(-1)!.id };
}

/** Those that workers have now, at most `count`, in pieces. */
export async function* runningRows(queues: Queues, runId: string, count: number): AsyncGenerator<OpenRow[], undefined> {
  const jobIds = await queues.redis.zrangebyscore(keys.running(runId), await redisNow(queues.redis), "+inf", "LIMIT", 0, count);
  for (let from = 0; from < jobIds.length; from += PIECE) yield await detailed(queues, jobIds.slice(from, from + PIECE));
  return undefined;
}

async function detailed(queues: Queues, jobIds: readonly string[]): Promise<OpenRow[]> {
  const found = (await findJobs(queues, jobIds)).filter(({ state }) => state !== "ended" && state !== "unknown");
  const replies = await inPipeline(queues.redis, (pipeline) => {
    for (const { activation_id } of found) pipeline.xrevrange(keys.progress(activation_id), "+", "-", "COUNT", 1);
  });
  const began = await beganAt(queues.redis, found);
  return found.map((each, index) => {
    const [entry] = replies[index] as [id: string, fields: string[]][];
    const { at, stage, note, counts } = entry === undefined ? ({} as Partial<ReturnType<typeof parseEntry>>) : parseEntry(...entry);
    const last =
      at === undefined || stage === undefined
        ? null
        : { at, stage, ...(note === undefined ? {} : { note }), ...(counts === undefined ? {} : { counts }) };
    const { activation_id, generation, worker_id: worker, attempt, due_at } = each;
    const task = each.task_id === null ? null : taskName(each.task_id);
    return {
      state: each.state as OpenRow["state"],
      activation_id,
      generation,
      task,
      worker,
      attempt,
      started_at: began[index]!,
      due_at,
      last,
    };
  });
}

const STATE_AT: Record<Exclude<Place, "running">, OpenRow["state"]> = {
  waiting: "waiting",
  parked: "parked",
  model_server: "delayed",
  able_worker: "delayed",
  next_attempt: "delayed",
};

/** Those that no worker has, at most `count`, in pieces and in no order; with rollouts that are not in the queue. */
export async function* waitingRows(queues: Queues, runId: string, count: number): AsyncGenerator<OpenRow[], undefined> {
  let left = count;
  for await (const piece of placesIn(queues, runId, await redisNow(queues.redis))) {
    const waiting = piece.flatMap(({ jobId, place, dueAt }) => (place === "running" ? [] : [{ jobId, place, dueAt }])).slice(0, left);
    const names = await activationsOf(
      queues,
      waiting.map(({ jobId }) => jobId),
    );
    left -= waiting.length;
    yield waiting.map(({ place, dueAt }, index) => ({
      state: STATE_AT[place],
      ...names[index]!,
      task: null,
      worker: null,
      attempt: null,
      started_at: null,
      due_at: dueAt === null ? null : new Date(dueAt).toISOString(),
      last: null,
    }));
    if (left === 0) return undefined;
  }
  for await (const ids of inPieces(queues.redis.sscanStream(keys.rollouts(runId), { count: PIECE }), PIECE)) {
    const rows = (await rolloutRows(queues, ids)).slice(0, left);
    left -= rows.length;
    yield rows;
    if (left === 0) return undefined;
  }
  return undefined;
}

/** Of those that are not in the queue. */
async function rolloutRows(queues: Queues, ids: readonly string[]): Promise<OpenRow[]> {
  const records = await readRecords(queues, ids);
  const known = [...records].map(([id, record]) => withRollout(notQueued(id), record, undefined, Date.now()));
  return known.flatMap(({ state, activation_id, generation, task_id, attempt, due_at, rollout }): OpenRow[] => {
    const phase = rollout?.state;
    if (phase === undefined || phase === "ended" || phase === "activation" || state === "ended" || state === "unknown") return [];
    const task = task_id === null ? null : taskName(task_id);
    const none = { worker: null, started_at: null, last: null };
    return [{ state, rollout: phase, activation_id, generation, task, attempt, due_at, ...none }];
  });
}

/** The inverse of activationJobId; an id that only looks like a later generation is told by its ledger. */
async function activationsOf({ redis }: Queues, jobIds: readonly string[]): Promise<{ activation_id: string; generation: number }[]> {
  const parts = jobIds.map((jobId) => /^(.+)\.g([1-9][0-9]*)$/.exec(jobId));
  const later = parts.flatMap((part) => (part === null ? [] : [part[1]!]));
  const known = (await inPipeline(redis, (pipeline) => {
    for (const id of later) pipeline.hexists(keys.ledger(id), "generation");
  })) as number[];
  const isLater = new Map(later.map((id, index) => [id, known[index] === 1]));
  return jobIds.map((jobId, index) => {
    const [, base = "", generation = "0"] = parts[index] ?? [];
    return isLater.get(base) === true ? { activation_id: base, generation: Number(generation) } : { activation_id: jobId, generation: 0 };
  });
}
