// SPDX-License-Identifier: Apache-2.0
import type { Status } from "../contract/result.ts";
import { keys } from "./names.ts";
import { readPause, type PauseMark } from "./pause.ts";
import { inPipeline } from "./pipeline.ts";
import type { Queues } from "./queues.ts";
import { dueOf } from "./find-activation.ts";
import { inPieces } from "./scan.ts";
import { LUA_NOW, runScript, script } from "./script.ts";
import { waitsFor, type WaitsFor } from "./waits.ts";

const CHUNK = 1_000;

export interface RunStatus {
  /** Includes what is about to be recorded as ended. */
  waiting: number;
  running: number;
  /** Held back by the run's gate. */
  parked: number;
  /** Waiting for what `delayed_for` says, which adds up to it. */
  delayed: number;
  delayed_for: Record<WaitsFor, number>;
  /** Until the next of those that wait for their next attempt. */
  next_attempt_in_ms: number | null;
  ended: Partial<Record<Status, number>>;
  paused: boolean;
  /** Who paused it and why; null when it is not paused. */
  pause: PauseMark | null;
  limit: number | null;
  /** ISO 8601: nothing of it starts afterwards. */
  not_after: string | null;
}

const COUNT_RUNNING = script(`${LUA_NOW} return redis.call('ZCOUNT', KEYS[1], now, '+inf')`);

/** Counts of one run's activations, each in one place: together they are all that have not ended when it is looked at. */
export async function runStatus(queues: Queues, runId: string): Promise<RunStatus> {
  const { redis } = queues;
  const [paused, limit, notAfter] = await redis.hmget(keys.gate(runId), "paused", "limit", "not_after");
  const [seconds, micros] = await redis.time();
  const now = Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000);
  let [waiting, running, parked, delayed] = [0, 0, 0, 0];
  const delayed_for: RunStatus["delayed_for"] = { model_server: 0, able_worker: 0, next_attempt: 0 };
  let nextAt = Number.POSITIVE_INFINITY;
  const delayedKey = queues.activations.toKey("delayed");
  const seen = new Set<string>(); // a scan may come to one again
  for await (const scanned of inPieces(redis.sscanStream(keys.pending(runId), { count: CHUNK }), CHUNK)) {
    const jobIds = scanned.filter((jobId) => !seen.has(jobId) && seen.add(jobId));
    if (jobIds.length === 0) continue;
    const [isRunning, isParked, isDelayed] = (await inPipeline(redis, (pipeline) => {
      for (const list of [keys.running(runId), keys.parked(runId), delayedKey]) pipeline.zmscore(list, ...jobIds);
    })) as (string | null)[][];
    const delays: { jobId: string; dueAt: number }[] = [];
    for (const [index, jobId] of jobIds.entries()) {
      const dueAt = isDelayed![index] ?? null;
      if (Number(isRunning![index] ?? 0) > now) running += 1;
      else if (isParked![index] != null) parked += 1;
      else if (dueAt === null) waiting += 1;
      else delays.push({ jobId, dueAt: dueOf(dueAt) });
    }
    const reasons = await waitsFor(
      queues,
      delays.map(({ jobId }) => jobId),
    );
    for (const [index, reason] of reasons.entries()) {
      delayed += 1;
      delayed_for[reason] += 1;
      if (reason === "next_attempt") nextAt = Math.min(nextAt, delays[index]!.dueAt);
    }
  }
  const ended: RunStatus["ended"] = {};
  for await (const fields of inPieces(redis.hscanStream(keys.statuses(runId), { count: CHUNK }), 2 * CHUNK)) {
    for (let index = 1; index < fields.length; index += 2) {
      const status = fields[index] as Status;
      ended[status] = (ended[status] ?? 0) + 1;
    }
  }
  const pause = await readPause(queues, runId);
  return {
    waiting,
    running,
    parked,
    delayed,
    delayed_for,
    next_attempt_in_ms: Number.isFinite(nextAt) ? Math.max(0, nextAt - now) : null,
    ended,
    paused: paused === "1",
    pause,
    limit: limit == null ? null : Number(limit),
    not_after: notAfter == null ? null : new Date(Number(notAfter)).toISOString(),
  };
}

/** Whether anything of the run is, or was lately, in this Redis. */
export async function isKnownRun({ redis }: Queues, runId: string): Promise<boolean> {
  return (await redis.exists(keys.pending(runId), keys.statuses(runId), keys.gate(runId), keys.ended(runId))) > 0;
}

/** How many of the run's activations hold a slot now. */
export async function countRunning(queues: Queues, runId: string): Promise<number> {
  return (await runScript(queues.redis, COUNT_RUNNING, [keys.running(runId)], [])) as number;
}
