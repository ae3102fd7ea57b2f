// SPDX-License-Identifier: Apache-2.0
import { dueOf } from "./find-activation.ts";
import { keys } from "./names.ts";
import { inPipeline } from "./pipeline.ts";
import type { Queues } from "./queues.ts";
import { inPieces } from "./scan.ts";
import { waitsFor, type WaitsFor } from "./waits.ts";

const CHUNK = 1_000;

/** Where a job is that has not ended. */
export type Place = "waiting" | "running" | "parked" | WaitsFor;

export interface PlacedJob {
  jobId: string;
  place: Place;
  /** ms since 1970; of one that is delayed. */
  dueAt: number | null;
}

/** Each job of the run that has not ended, once, in pieces of at most 1,000; in no order. `now` by the clock of Redis, in ms. */
export async function* placesIn(queues: Queues, runId: string, now: number): AsyncGenerator<PlacedJob[], undefined> {
  const { redis } = queues;
  const seen = new Set<string>();
  const delayedKey = queues.activations.toKey("delayed");
  for await (const scanned of inPieces(redis.sscanStream(keys.pending(runId), { count: CHUNK }), CHUNK)) {
    const jobIds = [...new Set(scanned)].filter((jobId) => !seen.has(jobId)); // a scan may come to one again
    if (jobIds.length === 0) continue;
    for (const jobId of jobIds) seen.add(jobId);
    const [isRunning, isParked, isDelayed] = (await inPipeline(redis, (pipeline) => {
      for (const list of [keys.running(runId), keys.parked(runId), delayedKey]) pipeline.zmscore(list, ...jobIds);
    })) as (string | null)[][];
    const dues = jobIds.map((_, index) => (isDelayed![index] == null ? null : dueOf(isDelayed![index])));
    const claimed = jobIds.map((_, index) => Number(isRunning![index] ?? 0) > now);
    const delayed = jobIds.filter((_, index) => !claimed[index] && isParked![index] == null && dues[index] !== null);
    const reasons = new Map((await waitsFor(queues, delayed)).map((reason, index) => [delayed[index]!, reason]));
    yield jobIds.map((jobId, index) => ({
      jobId,
      place: claimed[index] ? "running" : isParked![index] != null ? "parked" : (reasons.get(jobId) ?? "waiting"),
      dueAt: dues[index] ?? null,
    }));
  }
  return undefined;
}
