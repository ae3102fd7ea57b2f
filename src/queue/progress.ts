// SPDX-License-Identifier: Apache-2.0
import type { Redis } from "ioredis";
import type { ProgressEntry } from "../activation/ports.ts";
import { connectRedis } from "../redis/connect.ts";
import type { Status } from "../contract/result.ts";
import { keys } from "./names.ts";
import { inPipeline } from "./pipeline.ts";
import type { Queues } from "./queues.ts";
import { readStream } from "./stream.ts";

const MAX_ENTRIES = 1_000;
/** Of one that has ended: what came last is what anybody asks for, and ended ones are many. */
const MAX_ENTRIES_ENDED = 100;
const MAX_BYTES = 2_048;
/** At most four a second for one activation; changes of stage always go through. */
const MIN_INTERVAL_MS = 250;

/**
 * Publishes the progress of one activation; made once per claim. Calls never throw and never wait: entries that come too
 * fast, are too large, or find Redis away are dropped.
 */
export function progressPublisher(queues: Queues, activationId: string): (entry: ProgressEntry) => void {
  let last: { stage: string; at: number } | null = null;
  return (entry) => {
    const at = performance.now();
    if (last !== null && last.stage === entry.stage && at - last.at < MIN_INTERVAL_MS) return;
    last = { stage: entry.stage, at };
    publishProgress(queues, activationId, entry).catch(() => undefined); // live progress only; never worth a failure
  };
}

/** Appends one entry, without any limit of rate; drops it when it is too large or Redis is away. */
export async function publishProgress(queues: Queues, activationId: string, entry: ProgressEntry): Promise<void> {
  const small = Buffer.byteLength(JSON.stringify(entry), "utf8") <= MAX_BYTES;
  if (small && queues.redis.status === "ready") await appendProgress(queues, activationId, entry);
}

/** The last entry of an activation. Never dropped: whoever waits for the activation to begin must learn that it never will. */
export async function publishEnd(queues: Queues, activationId: string, attempt: number, status: Status): Promise<void> {
  await appendProgress(queues, activationId, { stage: "ended", attempt, note: status }, MAX_ENTRIES_ENDED);
}

/** Of an entry: the activation has ended (a worker's own "ended", without a status, says only that an attempt is over). */
export function isEnd({ stage, note }: ProgressEntry): boolean {
  return stage === "ended" && note !== undefined;
}

async function appendProgress({ redis, settings }: Queues, activationId: string, entry: ProgressEntry, most = MAX_ENTRIES): Promise<void> {
  const key = keys.progress(activationId);
  await inPipeline(redis, (pipeline) => {
    pipeline.xadd(key, "MAXLEN", "~", most, "*", "entry", JSON.stringify(entry)).pexpire(key, settings.keep_ended_ms);
  });
}

/** With its id in the stream, and when that was (ISO 8601, by the clock of Redis). */
export type ReadEntry = ProgressEntry & { id: string; at: string };

/** The newest entries, oldest first. */
export async function readProgress(redis: Redis, activationId: string, count = 100): Promise<ReadEntry[]> {
  const entries = await redis.xrevrange(keys.progress(activationId), "+", "-", "COUNT", count);
  return entries.reverse().map(([id, fields]) => parseEntry(id, fields));
}

/** Entries after the id `after`, oldest first, at most `count`. */
export async function progressAfter(
  redis: Redis,
  activationId: string,
  { after, count }: { after: string; count: number },
): Promise<ReadEntry[]> {
  const entries = await redis.xrange(keys.progress(activationId), `(${after}`, "+", "COUNT", count);
  return entries.map(([id, fields]) => parseEntry(id, fields));
}

/** Every entry from the first kept one on, as they come. Ends when aborted. */
export async function* followProgress(
  queues: Queues,
  activationId: string,
  options: { signal: AbortSignal },
): AsyncGenerator<ReadEntry, undefined> {
  const redis = connectRedis(queues.target, { role: "blocking", onError: queues.onError });
  try {
    for await (const [id, fields] of readStream(redis, keys.progress(activationId), { from: "0", ...options }))
      yield parseEntry(id, fields);
  } finally {
    redis.disconnect();
  }
  return undefined;
}

/** Resolves when Codex was started for the activation, when it ended, or when aborted. */
export async function untilBegun(queues: Queues, activationId: string, options: { signal: AbortSignal }): Promise<void> {
  for await (const { stage } of followProgress(queues, activationId, options)) if (stage !== "starting") return;
}

export function parseEntry(id: string, fields: string[]): ReadEntry {
  return { id, at: new Date(Number(id.split("-")[0])).toISOString(), ...(JSON.parse(fields[1]!) as ProgressEntry) };
}
