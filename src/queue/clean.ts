// SPDX-License-Identifier: Apache-2.0
import { activationJobId } from "../contract/identity.ts";
import type { FinalJobData } from "./jobs.ts";
import { FINAL, finalJobId, keys } from "./names.ts";
import { inPipeline } from "./pipeline.ts";
import type { Queues } from "./queues.ts";

/** How many activations go at once. Each is one short command, and Redis serves others in between. */
const BATCH = 50;

export interface Cleaned {
  /** Ended activations (each generation counts) whose jobs and streams are gone, or would be. */
  activations: number;
  /** Jobs without a parent: what a removal by hand leaves. */
  strays: number;
}

/**
 * Removes what ended before `before` (ms since 1970, by the clock of the hosts): jobs, ledgers, marks, progress. Results are
 * in the store and stay; so does whatever has not ended. Safe to stop and to run again, and beside workers.
 */
export async function cleanEnded(queues: Queues, options: { before: number; dryRun: boolean }): Promise<Cleaned> {
  const { before, dryRun } = options;
  if (dryRun) {
    return {
      activations: await queues.redis.zcount(queues.final.toKey("completed"), "-inf", before),
      strays: await countStrays(queues, before),
    };
  }
  let activations = 0;
  const runs = new Set<string>();
  for await (const ids of endedBefore(queues, queues.final.toKey("completed"), before)) {
    const jobIds = ids.map((id) => id.slice(finalJobId("").length));
    const { parents, held } = await dropJobs(queues, jobIds);
    for (const { run_id } of parents) runs.add(run_id);
    activations += jobIds.length - held;
  }
  let strays = 0;
  for (const list of ["completed", "failed"]) {
    for await (const jobIds of endedBefore(queues, queues.activations.toKey(list), before)) {
      const alone = await withoutParent(queues, jobIds);
      await Promise.all(alone.map((jobId) => queues.activations.getBackend().remove(jobId, false)));
      strays += alone.length;
    }
  }
  for (const runId of runs) await trimRun(queues, runId, before);
  return { activations, strays };
}

/**
 * Removes jobs in any state but those that a worker holds, with their parents and all that is kept of them. Of an activation
 * that has a newer generation the ledger stays.
 */
export async function dropJobs(queues: Queues, jobIds: readonly string[]): Promise<{ parents: FinalJobData[]; held: number }> {
  const texts = (await inPipeline(queues.redis, (pipeline) => {
    for (const jobId of jobIds) pipeline.hget(keys.job(FINAL, finalJobId(jobId)), "data");
  })) as (string | null)[];
  const gone = await Promise.all(jobIds.map((jobId, index) => removeJob(queues, jobId, texts[index] !== null)));
  const parents = texts.flatMap((text, index) => (text === null || !gone[index] ? [] : [JSON.parse(text) as FinalJobData]));
  const generations = (await inPipeline(queues.redis, (pipeline) => {
    for (const { activation_id } of parents) pipeline.hget(keys.ledger(activation_id), "generation");
  })) as (string | null)[];
  await inPipeline(queues.redis, (pipeline) => {
    for (const [index, jobId] of jobIds.entries())
      if (gone[index]) pipeline.unlink(keys.cancel(jobId), keys.unable(jobId), keys.givenUp(jobId));
    for (const [index, { activation_id, generation, run_id }] of parents.entries()) {
      pipeline.srem(keys.pending(run_id), activationJobId(activation_id, generation));
      if (Number(generations[index] ?? generation) !== generation) continue;
      pipeline.unlink(keys.ledger(activation_id), keys.progress(activation_id));
      for (const name of [keys.statuses, keys.causes, keys.rows]) pipeline.hdel(name(run_id), activation_id);
    }
  });
  return { parents, held: gone.filter((one) => !one).length };
}

/** A parent takes its child along, in one step, where both are whole. False: it, or its child, is held. */
async function removeJob(queues: Queues, jobId: string, whole: boolean): Promise<boolean> {
  const parent = await queues.final.getBackend().remove(finalJobId(jobId), true);
  const child = whole || parent !== 1 ? parent : await queues.activations.getBackend().remove(jobId, false);
  return child === 1;
}

/** Old ends are no news; a run of which nothing is left leaves nothing. */
async function trimRun(queues: Queues, runId: string, before: number): Promise<void> {
  await queues.redis.xtrim(keys.ended(runId), "MINID", "~", before);
  if ((await queues.redis.exists(keys.pending(runId), keys.statuses(runId), keys.rollouts(runId))) === 0) await dropRunKeys(queues, runId);
}

/** What is kept of a run as a whole. */
export async function dropRunKeys({ redis }: Queues, runId: string): Promise<void> {
  const { gate, running, parked, pending, statuses, causes, rows, ended, streak, touched, openings, rollouts, phases } = keys;
  await redis.unlink(
    [gate, running, parked, pending, statuses, causes, rows, ended, streak, touched, openings, rollouts, phases].map((key) => key(runId)),
  );
  await redis.srem(keys.parkedRuns, runId);
  await redis.zrem(keys.runs, runId);
}

/** Pieces of a sorted set by time, up to `before`; what is still there when the next piece is asked for is passed over. */
async function* endedBefore({ redis }: Queues, list: string, before: number): AsyncGenerator<string[], undefined> {
  let offset = 0;
  for (;;) {
    const ids = await redis.zrangebyscore(list, "-inf", before, "LIMIT", offset, BATCH);
    if (ids.length === 0) return undefined;
    yield ids;
    const left = await redis.zmscore(list, ...ids);
    offset += left.filter((score) => score !== null).length;
  }
}

async function withoutParent(queues: Queues, jobIds: readonly string[]): Promise<string[]> {
  const there = await inPipeline(queues.redis, (pipeline) => {
    for (const jobId of jobIds) pipeline.exists(keys.job(FINAL, finalJobId(jobId)));
  });
  return jobIds.filter((_, index) => there[index] === 0);
}

async function countStrays(queues: Queues, before: number): Promise<number> {
  let count = 0;
  for (const list of ["completed", "failed"]) {
    for await (const jobIds of endedBefore(queues, queues.activations.toKey(list), before)) {
      count += (await withoutParent(queues, jobIds)).length;
    }
  }
  return count;
}
