// SPDX-License-Identifier: Apache-2.0
import { redisTrouble } from "../redis/trouble.ts";
import { setTimeout as delay } from "node:timers/promises";
import { keys } from "../queue/names.ts";
import { isEnd, progressAfter } from "../queue/progress.ts";
import type { Queues } from "../queue/queues.ts";
import type { StreamWatch } from "../queue/stream-watch.ts";
import { findKnown } from "../resources/find-rollouts.ts";
import { eventView } from "./messages.ts";

const PAGE = 100;
const AGAIN_MS = 1_000;

/**
 * Server-sent events of one activation from the id `after` on, until it has ended or `signal` is aborted. Each piece is
 * read from Redis when the one before it has been taken, so a slow reader costs one page of memory. Every `heartbeatMs`
 * without an event there is a comment. Goes on after a loss of Redis.
 */
export async function* eventStream(
  { queues, watch }: { queues: Queues; watch: StreamWatch },
  activationId: string,
  options: { after: string; heartbeatMs: number; signal: AbortSignal },
): AsyncGenerator<string, undefined> {
  const { signal, heartbeatMs } = options;
  let after = options.after;
  yield ": events\n\n"; // the headers go out with it
  while (!signal.aborted) {
    try {
      const page = await progressAfter(queues.redis, activationId, { after, count: PAGE });
      for (const entry of page) {
        after = entry.id;
        yield sse(entry.id, eventView(entry));
        if (isEnd(entry)) return undefined;
      }
      if (page.length > 0) continue;
      if (await watch.changed(keys.progress(activationId), after, { signal, timeoutMs: heartbeatMs })) continue;
      if (signal.aborted) return undefined;
      const [found] = await findKnown(queues, [activationId]);
      if (found!.state === "unknown") return undefined; // removed
      if (found!.state === "ended" && (await progressAfter(queues.redis, activationId, { after, count: 1 })).length === 0) return undefined;
    } catch (error) {
      if (redisTrouble(error)?.kind !== "away") throw error;
      await delay(AGAIN_MS, undefined, { signal }).catch(() => undefined);
    }
    yield ": alive\n\n";
  }
  return undefined;
}

/** A body that is made as it is read. */
export function bodyOf(pieces: AsyncIterable<string>, done: () => void): ReadableStream<Uint8Array> {
  const iterator = pieces[Symbol.asyncIterator]();
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { value, done: over } = await iterator.next();
          if (over !== true) return controller.enqueue(Buffer.from(value, "utf8"));
          controller.close();
        } catch (error) {
          controller.error(error);
        }
        done();
      },
      async cancel() {
        done();
        await iterator.return?.();
      },
    },
    { highWaterMark: 0 },
  );
}

function sse(id: string, data: { stage: string }): string {
  return `id: ${id}\nevent: ${data.stage}\ndata: ${JSON.stringify(data)}\n\n`;
}
