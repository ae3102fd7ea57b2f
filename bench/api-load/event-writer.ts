// SPDX-License-Identifier: Apache-2.0
import { setTimeout as delay } from "node:timers/promises";
import { publishProgress } from "../../src/queue/progress.ts";
import type { Queues } from "../../src/queue/queues.ts";
import type { EventReader } from "./event-reader.ts";

export interface EventWriter {
  /** Writes so many bytes of events, never further ahead of `reader` than the stream keeps. */
  flood(reader: EventReader, bytes: number): Promise<void>;
  /** Writes an event to each every 250 ms, the rate of a worker, until the answer is called. */
  pace(activationIds: readonly string[]): () => Promise<void>;
  written(activationId: string): number;
}

const EVENT_BYTES = 2_000;
const AHEAD = 500;
const EVERY_MS = 250;
const STUCK_MS = 120_000;

/** Writes numbered events by the function that workers write theirs with; there are no workers here. */
export function eventWriter(queues: Queues): EventWriter {
  const counts = new Map<string, number>();
  const filling = "x".repeat(EVENT_BYTES - 150); // an entry may have 2,048 bytes

  async function write(activationId: string, text: string): Promise<void> {
    const number = counts.get(activationId) ?? 0;
    counts.set(activationId, number + 1);
    await publishProgress(queues, activationId, { stage: "running", attempt: 0, note: `${number} ${text}` });
  }

  return {
    async flood({ activationId, seen }, bytes) {
      for (let sent = 0; sent < bytes / EVENT_BYTES;) {
        const step = Array.from({ length: AHEAD }, () => write(activationId, filling));
        await Promise.all(step);
        sent += AHEAD;
        for (const since = performance.now(); seen.last < (counts.get(activationId) ?? 0) - 1; await delay(5))
          if (performance.now() - since > STUCK_MS) throw new Error(`a reader of ${activationId} got no event for ${STUCK_MS / 1_000} s`);
      }
    },
    pace(activationIds) {
      let over = false;
      const writing = activationIds.map(async (id, index) => {
        await delay((EVERY_MS * index) / activationIds.length); // workers do not write all at once
        // oxlint-disable-next-line no-unmodified-loop-condition -- the answer changes it
        while (!over) {
          await write(id, "exec_command");
          await delay(EVERY_MS);
        }
      });
      return async () => {
        over = true;
        await Promise.all(writing);
      };
    },
    written: (activationId) => counts.get(activationId) ?? 0,
  };
}
