// SPDX-License-Identifier: Apache-2.0
import type { Redis } from "ioredis";
import type { Logger } from "pino";
import { keys, PREFIX } from "./names.ts";
import { inPipeline } from "./pipeline.ts";
import type { Queues } from "./queues.ts";
import { inPieces } from "./scan.ts";

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

/** All results queues that anything was ever delivered to, or `most` of them. */
export async function unreadResults({ redis }: Queues, { most = Number.POSITIVE_INFINITY } = {}): Promise<UnreadResults[]> {
  const names = new Set<string>();
  for await (const piece of inPieces(redis.sscanStream(keys.resultQueues, { count: BATCH }), BATCH)) {
    for (const name of piece) names.add(name);
    if (names.size >= most) break;
  }
  const sorted = [...names].sort().slice(0, most);
  const found: UnreadResults[] = [];
  for (let from = 0; from < sorted.length; from += BATCH) found.push(...(await lookAt(redis, sorted.slice(from, from + BATCH))));
  return found;
}

async function lookAt(redis: Redis, names: readonly string[]): Promise<UnreadResults[]> {
  const counts = await inPipeline(redis, (pipeline) => {
    for (const queue of names) pipeline.llen(list(queue, "wait")).llen(list(queue, "active")).lrange(list(queue, "wait"), -1, -1);
  });
  const oldest = await inPipeline(redis, (pipeline) => {
    for (const [index, queue] of names.entries()) pipeline.hget(keys.job(queue, (counts[3 * index + 2] as string[])[0] ?? ""), "timestamp");
  });
  return names.map((queue, index) => {
    const [unread, claimed] = counts.slice(3 * index, 3 * index + 2) as [number, number];
    const since = oldest[index] as string | null;
    return { queue, unread, claimed, oldest_seconds: since === null ? null : Math.max(0, (Date.now() - Number(since)) / 1_000) };
  });
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
