// SPDX-License-Identifier: Apache-2.0
import { connectRedis } from "../redis/connect.ts";
import type { ActivationResult, Status } from "../contract/result.ts";
import { activationJobId } from "../contract/identity.ts";
import { countEnd } from "./end-counts.ts";
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
  /** Where to go on: give it as `from`. */
  id: string;
}

/** Tells followers of the run about an end and counts it. Doing it twice tells twice and counts once. */
export async function announceEnd(queues: Queues, result: ActivationResult): Promise<void> {
  const { activation_id, generation, run_id, status, failure } = result;
  const jobId = activationJobId(activation_id, generation);
  await keepRow(queues, result); // first: followers look it up
  await countEnd(queues, result);
  await inPipeline(queues.redis, (pipeline) => {
    if (failure === null) pipeline.hdel(keys.causes(run_id), activation_id);
    else pipeline.hset(keys.causes(run_id), activation_id, `${failure.failure_kind}/${failure.cause_code}`);
    pipeline.xadd(keys.ended(run_id), "MAXLEN", "~", MAX_ENDS, "*", "end", JSON.stringify({ activation_id, generation, status }));
    pipeline.srem(keys.touched(run_id), jobId);
    pipeline.pexpire(keys.ledger(activation_id), 2 * queues.settings.keep_ended_ms);
    pipeline.del(keys.unable(jobId), keys.givenUp(jobId));
    pipeline.zadd(keys.runs, "NX", Date.now(), run_id); // of a producer that announces nothing
  });
  if ((await queues.redis.scard(keys.pending(run_id))) > 0) return;
  await inPipeline(queues.redis, (pipeline) => {
    for (const name of [keys.statuses, keys.causes, keys.rows, keys.ended, keys.gate, keys.openings])
      pipeline.pexpire(name(run_id), 2 * queues.settings.keep_ended_ms);
  });
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
