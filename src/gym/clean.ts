// SPDX-License-Identifier: Apache-2.0
import { inPipeline } from "../queue/pipeline.ts";
import type { Queues } from "../queue/queues.ts";
import { gymKeys } from "./names.ts";
import type { SessionRecord } from "./session-state.ts";

const BATCH = 50;

/**
 * Removes agent sessions from Redis, which would go by themselves later: those that were closed before `before` (ms since 1970);
 * `before` null = all, open ones too. Answers how many, or how many would be.
 */
export async function cleanSessions(
  { redis }: Pick<Queues, "redis">,
  options: { before: number | null; dryRun: boolean },
): Promise<number> {
  const { before, dryRun } = options;
  let removed = 0;
  for (let offset = 0; ;) {
    const hashes = await redis.zrangebyscore(gymKeys.sessions, "-inf", before ?? "+inf", "LIMIT", offset, BATCH);
    if (hashes.length === 0) return removed;
    const texts = (await inPipeline(redis, (pipeline) => {
      for (const hash of hashes) pipeline.hget(gymKeys.session(hash), "record");
    })) as (string | null)[];
    const over = hashes.filter((_, index) => before === null || isOver(texts[index] ?? null));
    removed += over.length;
    offset += dryRun ? hashes.length : hashes.length - over.length;
    if (dryRun || over.length === 0) continue;
    await redis.unlink(over.flatMap((hash) => [gymKeys.session(hash), gymKeys.receipt(hash)]));
    await redis.zrem(gymKeys.sessions, ...over);
  }
}

/** Expired, or closed. */
function isOver(text: string | null): boolean {
  return text === null || (JSON.parse(text) as SessionRecord).state === "closed";
}
