// SPDX-License-Identifier: Apache-2.0
import type { ChainableCommander } from "ioredis";
import { connectRedis } from "../redis/connect.ts";
import type { ActivationResult, Status } from "../contract/result.ts";
import { activationJobId } from "../contract/identity.ts";
import { countEnd, countSession } from "./end-counts.ts";
import { keys } from "./names.ts";
import { inPipeline } from "./pipeline.ts";
import type { Queues } from "./queues.ts";
import { keepRow } from "./run-row.ts";
import { readStream } from "./stream.ts";

/** More ends than any run should have; a follower that falls behind this far finds the rest in the store. */
const MAX_ENDS = 200_000;

export interface Ended {
  activation_id: string;
  generation: number;
  status: Status;
  /** Of a rollout that a resources server scored: what the store has of it is more than the activation's result. */
  rollout?: true;
  /** Where to go on: give it as `from`. */
  id: string;
}

/**
 * Tells followers of the run about an end and counts it. Doing it twice tells twice and counts once. `counted`: the fleet's counts
 * have it already ({@link leaveRun}). `retryable`: it can be run again from what Redis has.
 */
export async function announceEnd(queues: Queues, result: ActivationResult, { counted = false, retryable = false } = {}): Promise<void> {
  const { activation_id, generation, run_id, status, failure, rollout } = result;
  await keepRow(queues, result, { retryable }); // first: followers look it up
  await countEnd(queues, result, counted);
  const end = { activation_id, generation, status, ...(rollout === undefined ? {} : { rollout: true }) };
  await inPipeline(queues.redis, (pipeline) => {
    if (failure === null) pipeline.hdel(keys.causes(run_id), activation_id);
    else pipeline.hset(keys.causes(run_id), activation_id, `${failure.failure_kind}/${failure.cause_code}`);
    pipeline.xadd(keys.ended(run_id), "MAXLEN", "~", MAX_ENDS, "*", "end", JSON.stringify(end));
    forgetJob(queues, pipeline, result);
    pipeline.zadd(keys.runs, "NX", Date.now(), run_id); // of a producer that announces nothing
  });
  if ((await queues.redis.scard(keys.pending(run_id))) > 0) return;
  await inPipeline(queues.redis, (pipeline) => {
    for (const name of [keys.statuses, keys.causes, keys.rows, keys.ended, keys.gate, keys.openings])
      pipeline.pexpire(name(run_id), 2 * queues.settings.keep_ended_ms);
  });
}

/**
 * The same of an activation whose rollout goes on: it is no longer to come, and nobody is told, since its run has an end only when the
 * rollout is over. Doing it twice changes nothing.
 */
export async function leaveRun(queues: Queues, result: ActivationResult): Promise<void> {
  await countSession(queues, result);
  await inPipeline(queues.redis, (pipeline) => forgetJob(queues, pipeline, result));
}

function forgetJob({ settings }: Queues, pipeline: ChainableCommander, { activation_id, generation, run_id }: ActivationResult): void {
  const jobId = activationJobId(activation_id, generation);
  pipeline.srem(keys.touched(run_id), jobId);
  pipeline.pexpire(keys.ledger(activation_id), 2 * settings.keep_ended_ms);
  pipeline.del(keys.unable(jobId), keys.givenUp(jobId));
}

/** Ends after the id `after`, oldest first, at most `count`. */
export async function endsAfter({ redis }: Queues, runId: string, { after, count }: { after: string; count: number }): Promise<Ended[]> {
  const entries = await redis.xrange(keys.ended(runId), `(${after}`, "+", "COUNT", count);
  return entries.map(([id, fields]) => parseEnd(id, fields));
}

/**
 * Ends of a run's activations from the beginning (or after `from`), then as they come; goes on after a lost connection.
 * One may come more than once. Returns when aborted.
 */
export async function* followRun(
  queues: Queues,
  runId: string,
  options: { from?: string; signal: AbortSignal },
): AsyncGenerator<Ended, undefined> {
  const redis = connectRedis(queues.target, { role: "blocking", onError: queues.onError });
  try {
    for await (const [id, fields] of readStream(redis, keys.ended(runId), { from: options.from ?? "0", signal: options.signal })) {
      yield parseEnd(id, fields);
    }
  } finally {
    redis.disconnect();
  }
  return undefined;
}

function parseEnd(id: string, fields: string[]): Ended {
  return { ...(JSON.parse(fields[1]!) as Omit<Ended, "id">), id };
}
