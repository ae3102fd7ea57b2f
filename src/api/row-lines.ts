// SPDX-License-Identifier: Apache-2.0
import { z } from "@hono/zod-openapi";
import { attemptSchema, resultSchema, statusSchema } from "../contract/result.ts";
import { ACTIVATION_STATES } from "../queue/find-activation.ts";
import type { Queues } from "../queue/queues.ts";
import { PHASES } from "../resources/record.ts";
import { rowsAfter, runningRows, waitingRows } from "../queue/run-rows.ts";
import { eventReply } from "./messages.ts";

const ms = z.int().min(0).nullable();
const counts = z.int().min(0);

const endedRow = z.object({
  state: z.literal("ended"),
  /** Go on after this row. */
  cursor: z.string(),
  activation_id: z.string(),
  generation: counts,
  status: statusSchema,
  /** taskset/task_id, cut. Null, like all that follows but `ended_at`, of what ended before rows were kept. */
  task: z.string().nullable(),
  failure_kind: z.string().nullable(),
  cause_code: z.string().nullable(),
  cause_class: resultSchema.shape.cause_class,
  worker: z.string().nullable(),
  attempts: counts.nullable(),
  /** Of the last attempt. */
  started_at: attemptSchema.shape.started_at.nullable(),
  ended_at: z.string(),
  queued_ms: ms,
  setup_ms: ms,
  run_ms: ms,
  collect_ms: ms,
  /** Of all attempts together, in and out. */
  tokens: counts.nullable(),
  /** The same by kind; null also of what ended before rows told it. */
  usage: resultSchema.shape.usage,
  tool_calls: counts.nullable(),
  servers: z.object({ granted: counts, skipped: counts, unavailable: counts, unknown: counts }).nullable(),
  /** Only of a rollout with a resources server, as it was scored when it ended; null: it was not. */
  reward: z.number().nullable().optional(),
  /** Only of what cannot be run again from here: its secrets were deleted, or it has no job. */
  retryable: z.literal(false).optional(),
});

const openRow = z.object({
  state: z.enum(ACTIVATION_STATES).exclude(["ended", "unknown"]),
  /** Only of a rollout that is not in the queue: where it is with its resources server. */
  rollout: z.enum(PHASES).optional(),
  activation_id: z.string(),
  generation: counts,
  /** Null, like what only a session has, of those that wait. */
  task: z.string().nullable(),
  worker: z.string().nullable(),
  attempt: z.int().nullable(),
  started_at: z.string().nullable(),
  /** Of one that is delayed or parked: when it is looked at again. */
  due_at: z.string().nullable(),
  last: eventReply.omit({ attempt: true }).nullable(),
});

export const runRow = z.union([endedRow, openRow]).openapi("RunRow");
export type RunRowReply = z.infer<typeof runRow>;

/** Which of a run's activations: one of these places. */
export const ROW_STATES = ["ended", "running", "waiting"] as const;
export type RowState = (typeof ROW_STATES)[number];

const PAGE = 500;

/** Lines of JSON, one for each activation that is there now, at most `limit`. Made piece by piece as they are read. */
export async function* rowLines(
  queues: Queues,
  runId: string,
  { state, cursor, limit, signal }: { state: RowState; cursor: string; limit: number; signal: AbortSignal },
): AsyncGenerator<string, undefined> {
  const pieces =
    state === "ended" ? endedPieces(queues, runId, cursor, limit) : (state === "running" ? runningRows : waitingRows)(queues, runId, limit);
  for await (const piece of pieces) {
    if (signal.aborted) return undefined;
    if (piece.length > 0) yield piece.map((row) => `${JSON.stringify(row satisfies RunRowReply)}\n`).join("");
  }
  return undefined;
}

async function* endedPieces(queues: Queues, runId: string, cursor: string, limit: number) {
  let left = limit;
  for (let after = cursor; left > 0;) {
    const { rows, last } = await rowsAfter(queues, runId, { after, count: Math.min(PAGE, left) });
    yield rows;
    if (last === null) return;
    left -= rows.length;
    after = last;
  }
}
