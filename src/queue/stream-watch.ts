// SPDX-License-Identifier: Apache-2.0
import { setTimeout as delay } from "node:timers/promises";
import { connectRedis } from "../redis/connect.ts";
import type { Queues } from "./queues.ts";

/** How long one look may block: so long a newcomer waits at most until its stream is looked at. */
const BLOCK_MS = 200;
/** A look that takes this long has lost its connection unnoticed. */
const LOST_MS = 5_000;

/**
 * Tells when streams get entries, to any number of waiters, over one connection: it is asked only for the streams that
 * somebody waits for, and reads no contents.
 */
export interface StreamWatch {
  /** True: `key` has an entry after the id `after`. False: not within `timeoutMs`, or aborted. Never rejects. */
  changed(key: string, after: string, options: { signal: AbortSignal; timeoutMs: number }): Promise<boolean>;
  /** Everybody who waits is told false. */
  close(): void;
}

interface Waiter {
  key: string;
  after: string;
  tell(changed: boolean): void;
}

/** The caller closes it. Its connection is made when somebody waits for the first time. */
export function watchStreams({ target, onError }: Pick<Queues, "target" | "onError">): StreamWatch {
  const waiters = new Set<Waiter>();
  let redis: ReturnType<typeof connectRedis> | null = null;
  let looking = false;
  const closing = new AbortController();

  async function look(): Promise<void> {
    redis ??= connectRedis(target, { role: "blocking", onError });
    while (waiters.size > 0 && !closing.signal.aborted) {
      const asked = earliest(waiters);
      const reply = await within(LOST_MS, redis.xread("COUNT", 1, "BLOCK", BLOCK_MS, "STREAMS", ...asked.keys(), ...asked.values()));
      if (reply === "lost") redis.disconnect(true); // and connects again
      if (reply === "lost" || reply === null) continue;
      const changed = new Map(reply.map(([key, entries]) => [key, entries[0]![0]]));
      for (const waiter of waiters) {
        const first = changed.get(waiter.key);
        // A waiter that is ahead of the others of its stream may have seen it.
        if (first !== undefined && (asked.get(waiter.key) === waiter.after || isAfter(first, waiter.after))) waiter.tell(true);
      }
    }
  }

  function start(): void {
    if (looking) return;
    looking = true;
    look()
      .catch(async (error: unknown) => {
        if (!closing.signal.aborted) onError(error as Error);
        await delay(BLOCK_MS);
      })
      .finally(() => {
        looking = false;
        if (waiters.size > 0 && !closing.signal.aborted) start();
      });
  }

  return {
    changed(key, after, { signal, timeoutMs }) {
      if (closing.signal.aborted || signal.aborted) return Promise.resolve(false);
      return new Promise((resolve) => {
        const waiter: Waiter = {
          key,
          after,
          tell(changed) {
            waiters.delete(waiter);
            clearTimeout(timer);
            signal.removeEventListener("abort", giveUp);
            resolve(changed);
          },
        };
        const giveUp = (): void => waiter.tell(false);
        const timer = setTimeout(giveUp, timeoutMs);
        signal.addEventListener("abort", giveUp, { once: true });
        waiters.add(waiter);
        start();
      });
    },
    close() {
      closing.abort();
      for (const waiter of waiters) waiter.tell(false);
      redis?.disconnect();
    },
  };
}

/** Where to look from, by stream: the waiter that has seen least decides. Pure. */
function earliest(waiters: Iterable<Waiter>): Map<string, string> {
  const from = new Map<string, string>();
  for (const { key, after } of waiters) {
    const known = from.get(key);
    if (known === undefined || isAfter(known, after)) from.set(key, after);
  }
  return from;
}

/** Of two ids of a stream (`ms-seq`, or "0"). Pure. */
export function isAfter(id: string, other: string): boolean {
  const [ms = 0, seq = 0] = id.split("-").map(Number);
  const [otherMs = 0, otherSeq = 0] = other.split("-").map(Number);
  return ms > otherMs || (ms === otherMs && seq > otherSeq);
}

async function within<T>(ms: number, work: Promise<T>): Promise<T | "lost"> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<"lost">((resolve) => (timer = setTimeout(resolve, ms, "lost")));
  work.catch(() => undefined); // it may fail after it was given up
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}
