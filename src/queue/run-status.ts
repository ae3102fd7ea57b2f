// SPDX-License-Identifier: Apache-2.0
import type { Status } from "../contract/result.ts";
import { keys } from "./names.ts";
import { readPause, type PauseMark } from "./pause.ts";
import { inPipeline } from "./pipeline.ts";
import type { Queues } from "./queues.ts";
import { inPieces } from "./scan.ts";
import { LUA_NOW, runScript, script } from "./script.ts";

const CHUNK = 1_000;

export interface RunStatus {
  /** Includes what is about to be recorded as ended. */
  waiting: number;
  running: number;
  /** Held back by the run's gate. */
  parked: number;
  /** Waiting for its next attempt, or for a worker that can run it. */
  delayed: number;
  ended: Partial<Record<Status, number>>;
  paused: boolean;
  /** Who paused it and why; null when it is not paused. */
  pause: PauseMark | null;
  limit: number | null;
}

const COUNT_RUNNING = script(`${LUA_NOW} return redis.call('ZCOUNT', KEYS[1], now, '+inf')`);

/** Counts of one run's activations. A snapshot of several reads: sums may be off by what moves meanwhile. */
export async function runStatus(queues: Queues, runId: string): Promise<RunStatus> {
  const { redis } = queues;
  const [paused, limit] = await redis.hmget(keys.gate(runId), "paused", "limit");
  const running = await countRunning(queues, runId);
  let [pending, parked, delayed] = [0, 0, 0];
  const delayedKey = queues.activations.toKey("delayed");
  for await (const jobIds of inPieces(redis.sscanStream(keys.pending(runId), { count: CHUNK }), CHUNK)) {
    pending += jobIds.length;
    const [isDelayed, isParked] = (await inPipeline(redis, (pipeline) => {
      pipeline.zmscore(delayedKey, ...jobIds).zmscore(keys.parked(runId), ...jobIds);
    })) as [(string | null)[], (string | null)[]];
    for (const [index, score] of isDelayed.entries()) {
      if (isParked[index] !== null) parked += 1;
      else if (score !== null) delayed += 1;
    }
  }
  const ended: RunStatus["ended"] = {};
  for await (const fields of inPieces(redis.hscanStream(keys.statuses(runId), { count: CHUNK }), 2 * CHUNK)) {
    for (let index = 1; index < fields.length; index += 2) {
      const status = fields[index] as Status;
      ended[status] = (ended[status] ?? 0) + 1;
    }
  }
  const waiting = Math.max(0, pending - running - parked - delayed);
  const pause = await readPause(queues, runId);
  return { waiting, running, parked, delayed, ended, paused: paused === "1", pause, limit: limit == null ? null : Number(limit) };
}

/** Whether anything of the run is, or was lately, in this Redis. */
export async function isKnownRun({ redis }: Queues, runId: string): Promise<boolean> {
  return (await redis.exists(keys.pending(runId), keys.statuses(runId), keys.gate(runId), keys.ended(runId))) > 0;
}

/** How many of the run's activations hold a slot now. */
export async function countRunning(queues: Queues, runId: string): Promise<number> {
  return (await runScript(queues.redis, COUNT_RUNNING, [keys.running(runId)], [])) as number;
}
