// SPDX-License-Identifier: Apache-2.0
import type { Logger } from "pino";
import { keys, PREFIX } from "./names.ts";
import { inPipeline } from "./pipeline.ts";
import type { Queues } from "./queues.ts";

/** One results queue; its counts are made to be a metric. */
export interface UnreadResults {
  queue: string;
  /** Delivered, and not taken. */
  unread: number;
  /** Taken, and not acknowledged. */
  claimed: number;
  /** Of the oldest unread one, since its activation ended. */
  oldest_seconds: number | null;
}

const LOOK_MS = 600_000;
/** The last part of its time, in which is warned of an unread result. */
const WARN_PART = 0.2;
const BATCH = 100;

/** All results queues that anything was ever delivered to. */
export async function unreadResults({ redis }: Queues): Promise<UnreadResults[]> {
  const names = (await redis.smembers(keys.resultQueues)).sort();
  const found: UnreadResults[] = [];
  for (const queue of names) {
    const [unread, claimed, ids] = (await inPipeline(redis, (pipeline) => {
      pipeline.llen(list(queue, "wait")).llen(list(queue, "active")).lrange(list(queue, "wait"), -1, -1);
    })) as [number, number, string[]];
    const [oldest] = await deliveredAt({ redis }, queue, ids);
    found.push({ queue, unread, claimed, oldest_seconds: oldest === undefined ? null : Math.max(0, (Date.now() - oldest) / 1_000) });
  }
  return found;
}

/**
 * Removes results that nobody took within `keepMs` of their end, so that a consumer that went away does not fill Redis; they
 * stay in the store. Answers how many. Consumers take them in the order of their ends, so the oldest is the last of the list.
 */
export async function trimUnread(queues: Queues, queue: string, keepMs: number): Promise<number> {
  let removed = 0;
  for (;;) {
    const ids = (await queues.redis.lrange(list(queue, "wait"), -BATCH, -1)).reverse();
    const times = await deliveredAt(queues, queue, ids);
    const old = ids.filter((_, index) => times[index]! < Date.now() - keepMs);
    if (old.length === 0) return removed;
    for (const id of old) removed += await queues.results(queue).remove(id);
  }
}

/** Looks every ten minutes, warns of what is about to be removed, and removes it. Answers how to end it. */
export function watchUnread(queues: Queues, { log, keepMs }: { log: Logger; keepMs: number }): () => void {
  async function look(): Promise<void> {
    for (const { queue, unread, oldest_seconds } of await unreadResults(queues)) {
      const left = oldest_seconds === null ? null : keepMs / 1_000 - oldest_seconds;
      if (left === null || left > (keepMs / 1_000) * WARN_PART) continue;
      if (left > 0)
        log.warn(
          { queue, unread, oldest_seconds, removed_in_seconds: left },
          "nobody reads these results: the oldest are about to be removed",
        );
      const removed = left > 0 ? 0 : await trimUnread(queues, queue, keepMs);
      if (removed > 0)
        log.warn({ queue, removed }, "results that nobody read in time were removed from their queue; they are in the artifact store");
    }
  }
  const timer = setInterval(() => void look().catch(queues.onError), LOOK_MS);
  void look().catch(queues.onError);
  return () => clearInterval(timer);
}

function list(queue: string, name: "wait" | "active"): string {
  return `${PREFIX}:${queue}:${name}`;
}

async function deliveredAt({ redis }: Pick<Queues, "redis">, queue: string, ids: readonly string[]): Promise<number[]> {
  const times = await inPipeline(redis, (pipeline) => {
    for (const id of ids) pipeline.hget(keys.job(queue, id), "timestamp");
  });
  return times.map(Number);
}
