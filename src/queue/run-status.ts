// SPDX-License-Identifier: Apache-2.0
import type { Status } from "../contract/result.ts";
import { redisNow } from "../redis/clock.ts";
import { readBudget, type BudgetState } from "./budget.ts";
import { keys } from "./names.ts";
import { readPause, type PauseMark } from "./pause.ts";
import type { Queues } from "./queues.ts";
import { placesIn, type Place } from "./run-places.ts";
import { inPieces } from "./scan.ts";
import { LUA_NOW, runScript, script } from "./script.ts";
import type { WaitsFor } from "./waits.ts";

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
  /** Rollouts that are not in the queue: they wait for their resources server, or are seeded, verified or closed there. */
  with_server: number;
  /** Until the next of those that wait for their next attempt. */
  next_attempt_in_ms: number | null;
  ended: Partial<Record<Status, number>>;
  paused: boolean;
  /** Who paused it and why; null when it is not paused. */
  pause: PauseMark | null;
  limit: number | null;
  budget: BudgetState;
}

const COUNT_RUNNING = script(`${LUA_NOW} return redis.call('ZCOUNT', KEYS[1], now, '+inf')`);

/** Counts of one run's activations, each in one place: together they are all that are known when it is looked at. */
export async function runStatus(queues: Queues, runId: string): Promise<RunStatus> {
  const { redis } = queues;
  const [paused, limit] = await redis.hmget(keys.gate(runId), "paused", "limit");
  const budget = await readBudget(queues, runId); // before the places: once it is spent, nothing more begins
  const rollouts = await openRollouts(queues, runId); // and these: what they have counts as not ended, wherever else it is seen
  const { places, next_attempt_in_ms } = await placesOf(queues, runId, await redisNow(redis));
  const jobsOf = byActivation(places.keys());
  const with_server = [...rollouts].filter((id) => !jobsOf.has(id)).length;
  const ended = await endedOf(queues, runId, { places, jobsOf, rollouts });
  const counts: Record<Place, number> = { waiting: 0, running: 0, parked: 0, model_server: 0, able_worker: 0, next_attempt: 0 };
  for (const place of places.values()) counts[place] += 1;
  const { waiting, running, parked, ...delayed_for } = counts;
  return {
    waiting,
    running,
    parked,
    delayed: delayed_for.model_server + delayed_for.able_worker + delayed_for.next_attempt,
    delayed_for,
    with_server,
    next_attempt_in_ms,
    ended,
    paused: paused === "1",
    pause: await readPause(queues, runId),
    limit: limit == null ? null : Number(limit),
    budget,
  };
}

/** Where each job of the run is that has not ended. */
async function placesOf(
  queues: Queues,
  runId: string,
  now: number,
): Promise<{ places: Map<string, Place>; next_attempt_in_ms: number | null }> {
  const places = new Map<string, Place>();
  let nextAt = Number.POSITIVE_INFINITY;
  for await (const piece of placesIn(queues, runId, now)) {
    for (const { jobId, place, dueAt } of piece) {
      places.set(jobId, place);
      if (place === "next_attempt" && dueAt !== null) nextAt = Math.min(nextAt, dueAt);
    }
  }
  return { places, next_attempt_in_ms: Number.isFinite(nextAt) ? Math.max(0, nextAt - now) : null };
}

/** Those that have not ended. */
async function openRollouts({ redis }: Queues, runId: string): Promise<Set<string>> {
  const open = new Set<string>();
  for await (const ids of inPieces(redis.sscanStream(keys.rollouts(runId), { count: CHUNK }), CHUNK)) for (const id of ids) open.add(id);
  return open;
}

function byActivation(jobIds: Iterable<string>): Map<string, string[]> {
  const jobsOf = new Map<string, string[]>();
  for (const jobId of jobIds) {
    const later = /^(.+)\.g[0-9]+$/.exec(jobId); // of a later generation, or an id that looks like one
    for (const id of later === null ? [jobId] : [jobId, later[1]!]) jobsOf.set(id, [...(jobsOf.get(id) ?? []), jobId]);
  }
  return jobsOf;
}

/**
 * How many ended how. What ended since `places` were looked at is taken out of them: it would count twice. An earlier end of a rollout that
 * goes on does not count.
 */
async function endedOf(
  { redis }: Queues,
  runId: string,
  { places, jobsOf, rollouts }: { places: Map<string, Place>; jobsOf: ReadonlyMap<string, string[]>; rollouts: ReadonlySet<string> },
): Promise<RunStatus["ended"]> {
  const ended: RunStatus["ended"] = {};
  const seen = new Set<string>();
  for await (const fields of inPieces(redis.hscanStream(keys.statuses(runId), { count: CHUNK }), 2 * CHUNK)) {
    const doubtful: string[] = [];
    for (let index = 0; index < fields.length; index += 2) {
      const [id, status] = [fields[index]!, fields[index + 1] as Status];
      if (seen.has(id)) continue;
      seen.add(id);
      if (rollouts.has(id)) continue;
      ended[status] = (ended[status] ?? 0) + 1;
      doubtful.push(...(jobsOf.get(id) ?? []));
    }
    if (doubtful.length === 0) continue;
    const isPending = await redis.smismember(keys.pending(runId), ...doubtful);
    for (const [index, jobId] of doubtful.entries()) if (isPending[index] === 0) places.delete(jobId);
  }
  return ended;
}

/** Whether anything of the run is, or was lately, in this Redis. */
export async function isKnownRun({ redis }: Queues, runId: string): Promise<boolean> {
  return (await redis.exists(keys.pending(runId), keys.statuses(runId), keys.gate(runId), keys.ended(runId), keys.rollouts(runId))) > 0;
}

/** How many of the run's activations hold a slot now. */
export async function countRunning(queues: Queues, runId: string): Promise<number> {
  return (await runScript(queues.redis, COUNT_RUNNING, [keys.running(runId)], [])) as number;
}
