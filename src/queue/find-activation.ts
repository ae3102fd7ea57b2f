// SPDX-License-Identifier: Apache-2.0
import type { JobState } from "bullmq";
import type { CancelMark, ProgressEntry } from "../activation/ports.ts";
import { activationIdSchema, activationJobId, type TaskId } from "../contract/identity.ts";
import type { Status } from "../contract/result.ts";
import type { FinalJobData } from "./jobs.ts";
import { ACTIVATIONS, FINAL, finalJobId, keys } from "./names.ts";
import { inPipeline } from "./pipeline.ts";
import type { Queues } from "./queues.ts";

/**
 * Where an activation is. parked: held back by its run's gate. delayed: until its next attempt, or until a worker can run it.
 * starting: claimed, Codex not begun. committing: Codex is gone, its end is being collected, committed or recorded. unknown:
 * never queued, or removed.
 */
export const ACTIVATION_STATES = ["waiting", "parked", "delayed", "starting", "running", "committing", "ended", "unknown"] as const;
export type ActivationState = (typeof ACTIVATION_STATES)[number];

/** One generation of an activation, as Redis knows it. */
export interface FoundActivation {
  activation_id: string;
  job_id: string;
  generation: number;
  run_id: string | null;
  task_id: TaskId | null;
  state: ActivationState;
  /** Of one that has ended. */
  status: Status | null;
  /** The attempt that runs. */
  attempt: number | null;
  /** A session of it was begun and has not been heard of since: it runs, or its worker was lost. Also of one that waits again. */
  begun: boolean;
  charged: number;
  /** Who has it, of one that is starting, running or committing. */
  worker_id: string | null;
  /** ISO 8601; of one that is delayed or parked: when it is looked at again at the latest. */
  due_at: string | null;
  /** Somebody asked for its end. */
  cancel: CancelMark | null;
}

/** BullMQ keeps the time of a delayed job times this, plus a counter. */
const DELAYED_FACTOR = 0x1000;

/** When a delayed job is due, in ms since 1970, by its score. */
export function dueOf(score: string): number {
  return Math.floor(Number(score) / DELAYED_FACTOR);
}

/** The latest generation of each. One reply per id, in order. Meant for up to some hundred. What cannot be an id is unknown. */
export async function findActivations(queues: Queues, activationIds: readonly string[]): Promise<FoundActivation[]> {
  const possible = activationIds.filter((id) => activationIdSchema.safeParse(id).success); // others may name keys of the queue
  const found = (await findPossible(queues, possible)).values();
  return activationIds.map((id) => (possible.includes(id) ? found.next().value! : notQueued(id)));
}

/** Of an id that the queue does not know. Pure. */
export function notQueued(id: string): FoundActivation {
  return { ...UNKNOWN, activation_id: id, job_id: id };
}

const UNKNOWN: Omit<FoundActivation, "activation_id" | "job_id"> = {
  generation: 0,
  run_id: null,
  task_id: null,
  state: "unknown",
  status: null,
  attempt: null,
  begun: false,
  charged: 0,
  worker_id: null,
  due_at: null,
  cancel: null,
};

async function findPossible(queues: Queues, activationIds: readonly string[]): Promise<FoundActivation[]> {
  if (activationIds.length === 0) return [];
  const generations = (await inPipeline(queues.redis, (pipeline) => {
    for (const id of activationIds) pipeline.hget(keys.ledger(id), "generation");
  })) as (string | null)[];
  const jobIds = activationIds.map((id, index) => activationJobId(id, Number(generations[index] ?? 0)));
  const found = await findJobs(queues, jobIds);
  return found.map((each, index) => (each.state === "unknown" ? { ...each, activation_id: activationIds[index]! } : each));
}

/** The same by job ids. A snapshot of several reads: what moves in between may be seen where it was. */
export async function findJobs(queues: Queues, jobIds: readonly string[]): Promise<FoundActivation[]> {
  if (jobIds.length === 0) return [];
  const first = await inPipeline(queues.redis, (pipeline) => {
    for (const jobId of jobIds) {
      pipeline.hmget(keys.job(FINAL, finalJobId(jobId)), "data", "finishedOn", "returnvalue");
      pipeline.hget(keys.job(ACTIVATIONS, jobId), "pb");
      pipeline.get(keys.cancel(jobId));
    }
  });
  const finals = jobIds.map((_, index) => {
    const [data, finishedOn, returned] = first[3 * index] as (string | null)[];
    return { data: data == null ? null : (JSON.parse(data) as FinalJobData), ended: finishedOn != null, returned };
  });
  const delayed = queues.activations.toKey("delayed");
  const [states, second] = await Promise.all([
    Promise.all(jobIds.map((jobId) => queues.activations.getJobState(jobId))),
    inPipeline(queues.redis, (pipeline) => {
      for (const [index, jobId] of jobIds.entries()) {
        const { activation_id = jobId, run_id = "" } = finals[index]!.data ?? {};
        pipeline.hmget(keys.ledger(activation_id), "open", "charged");
        pipeline.zscore(keys.parked(run_id), jobId);
        pipeline.zscore(delayed, jobId);
        pipeline.xrevrange(keys.progress(activation_id), "+", "-", "COUNT", 1);
      }
    }),
  ]);
  return jobIds.map((jobId, index) => {
    const { data, ended, returned } = finals[index]!;
    const [ledger, parkedAt, delayedUntil, progress] = second.slice(4 * index, 4 * index + 4) as [
      (string | null)[],
      string | null,
      string | null,
      [id: string, fields: string[]][],
    ];
    const attempt = ledger[0] == null ? null : Number(ledger[0]);
    const last = progress[0] === undefined ? null : (JSON.parse(progress[0][1][1]!) as ProgressEntry);
    const state = stateOf({
      known: data !== null,
      ended,
      job: states[index]!,
      parked: parkedAt !== null,
      attempt,
      stage: last !== null && last.attempt === attempt ? last.stage : null,
    });
    const claimed = state === "starting" || state === "running" || state === "committing";
    const mark = first[3 * index + 2] as string | null;
    return {
      activation_id: data?.activation_id ?? jobId,
      job_id: jobId,
      generation: data?.generation ?? 0,
      run_id: data?.run_id ?? null,
      task_id: data?.task_id ?? null,
      state,
      status: ended && returned != null ? (JSON.parse(returned) as { status: Status }).status : null,
      attempt: claimed ? attempt : null,
      begun: attempt !== null,
      charged: Number(ledger[1] ?? 0),
      worker_id: claimed ? (first[3 * index + 1] as string | null) : null,
      due_at: delayedUntil === null ? null : new Date(dueOf(delayedUntil)).toISOString(),
      cancel: mark === null ? null : (JSON.parse(mark) as CancelMark),
    };
  });
}

interface StateFacts {
  /** Its parent is there. */
  known: boolean;
  /** Its end is recorded. */
  ended: boolean;
  job: JobState | "unknown";
  parked: boolean;
  /** The attempt that is open in the ledger. */
  attempt: number | null;
  /** The last stage that was told of this attempt. */
  stage: ProgressEntry["stage"] | null;
}

/** Pure. */
export function stateOf({ known, ended, job, parked, attempt, stage }: StateFacts): ActivationState {
  if (!known) return "unknown";
  if (ended) return "ended";
  switch (job) {
    case "delayed":
      return parked ? "parked" : "delayed";
    case "active":
      if (attempt === null || stage === "starting") return "starting";
      return stage === "collecting" || stage === "ended" ? "committing" : "running";
    case "completed":
    case "failed":
    case "unknown":
      return "committing"; // over for its worker, or removed from the queue; `final` has not recorded it yet
    default:
      return "waiting";
  }
}
