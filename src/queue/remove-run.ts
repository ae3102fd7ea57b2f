// SPDX-License-Identifier: Apache-2.0
import { activationJobId } from "../contract/identity.ts";
import { countPending } from "./await-ends.ts";
import { dropJobs, dropRunKeys } from "./clean.ts";
import { findJobs } from "./find-activation.ts";
import { setRunGate } from "./gate.ts";
import { ACTIVATIONS, FINAL, finalJobId, keys } from "./names.ts";
import { inPipeline } from "./pipeline.ts";
import type { Queues } from "./queues.ts";
import { inPieces } from "./scan.ts";

const BATCH = 50;

export interface RemovedRun {
  /** Activations that had ended, and that had not. */
  ended: number;
  open: number;
  /** Activations that workers hold. While there are any nothing is removed; when some came in between, the run stays paused. */
  held: number;
}

/**
 * Removes everything that Redis knows of a run, half done as it may be: jobs in any state, parents that would wait for ever,
 * streams, gate. Nothing ends by it, and nobody is told: cancel first where results are wanted. Results in the store and
 * jobs of results queues, which are their consumers', stay.
 */
export async function removeRun(queues: Queues, runId: string, options: { dryRun: boolean }): Promise<RemovedRun> {
  const { redis } = queues;
  const found: RemovedRun = { ended: await redis.hlen(keys.statuses(runId)), open: await countPending(queues, runId), held: 0 };
  for await (const jobIds of pendingOf(queues, runId)) found.held += await countHeld(queues, jobIds);
  if (options.dryRun || found.held > 0) return found;

  await setRunGate(queues, runId, { paused: true }); // nothing of it starts meanwhile
  // Rollouts first: without its record nothing of one goes on. Sessions that they had at a resources server are not closed.
  for await (const ids of inPieces(redis.sscanStream(keys.rollouts(runId), { count: BATCH }), BATCH))
    await redis.unlink(ids.map((id) => keys.rollout(id)));
  for await (const jobIds of pendingOf(queues, runId)) {
    const places = await findJobs(queues, jobIds);
    found.held += await dropGenerations(
      queues,
      places.map(({ activation_id }) => activation_id),
    );
    found.held += (await dropJobs(queues, jobIds)).held; // also one without its parent, which tells nothing of its activation
  }
  for await (const fields of inPieces(redis.hscanStream(keys.statuses(runId), { count: BATCH }), 2 * BATCH)) {
    found.held += await dropGenerations(
      queues,
      fields.filter((_, index) => index % 2 === 0),
    );
  }
  if (found.held === 0) await dropRunKeys(queues, runId);
  return found;
}

function pendingOf(queues: Queues, runId: string): AsyncGenerator<string[], undefined> {
  return inPieces(queues.redis.sscanStream(keys.pending(runId), { count: BATCH }), BATCH);
}

async function countHeld(queues: Queues, jobIds: readonly string[]): Promise<number> {
  const locks = (await inPipeline(queues.redis, (pipeline) => {
    for (const jobId of jobIds) pipeline.exists(`${keys.job(ACTIVATIONS, jobId)}:lock`, `${keys.job(FINAL, finalJobId(jobId))}:lock`);
  })) as number[];
  return locks.filter((count) => count > 0).length;
}

/** All generations of some activations, and what is kept of them when the parents are gone. Answers how many are held. */
async function dropGenerations(queues: Queues, activationIds: readonly string[]): Promise<number> {
  const latest = (await inPipeline(queues.redis, (pipeline) => {
    for (const id of activationIds) pipeline.hget(keys.ledger(id), "generation");
  })) as (string | null)[];
  const jobIds = activationIds.flatMap((id, index) =>
    Array.from({ length: Number(latest[index] ?? 0) + 1 }, (_, generation) => activationJobId(id, generation)),
  );
  const { held } = await dropJobs(queues, jobIds);
  if (held > 0) return held;
  await inPipeline(queues.redis, (pipeline) => {
    for (const id of activationIds) pipeline.unlink(keys.ledger(id), keys.progress(id));
  });
  return 0;
}
