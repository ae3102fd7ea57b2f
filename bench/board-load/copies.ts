// SPDX-License-Identifier: Apache-2.0
import { FINAL, finalJobId, ACTIVATIONS, keys } from "../../src/queue/names.ts";
import { inPipeline } from "../../src/queue/pipeline.ts";
import type { Queues } from "../../src/queue/queues.ts";

const BATCH = 200;

/**
 * Makes `count` copies of an activation that has ended, as Redis keeps it: jobs, ledger, progress, status, with the id replaced.
 * Ending each for real would write a result to the disk for each, which is not what is measured here.
 */
export async function copyEnded(queues: Queues, original: string, count: number, copyId: (index: number) => string): Promise<void> {
  const { redis } = queues;
  const run = "bench-run";
  const hashes = [keys.job(ACTIVATIONS, original), keys.job(FINAL, finalJobId(original)), keys.ledger(original)];
  const texts = await Promise.all(hashes.map(async (hash) => Object.entries(await redis.hgetall(hash)).flat()));
  const events = await redis.xrange(keys.progress(original), "-", "+");
  const lists = [queues.activations.toKey("completed"), queues.final.toKey("completed")];
  const scores = await Promise.all(
    [original, finalJobId(original)].map(async (id, index) => Number(await redis.zscore(lists[index]!, id))),
  );
  for (let from = 0; from < count; from += BATCH) {
    const ids = Array.from({ length: Math.min(BATCH, count - from) }, (_, index) => copyId(from + index));
    await inPipeline(redis, (pipeline) => {
      for (const [at, id] of ids.entries()) {
        for (const [index, hash] of hashes.entries())
          pipeline.hset(
            hash.replace(original, id),
            texts[index]!.map((text) => text.replaceAll(original, id)),
          );
        for (const [entry, fields] of events) pipeline.xadd(keys.progress(id), entry, ...fields);
        for (const [index, member] of [id, finalJobId(id)].entries())
          pipeline.zadd(lists[index]!, scores[index]! - count + from + at, member); // none ends in the future
        pipeline.hset(keys.statuses(run), id, "completed");
      }
    });
  }
}
