// SPDX-License-Identifier: Apache-2.0
import { redisMachineAnswers } from "../redis/reach.ts";
import type { Queues } from "./queues.ts";

/** Ends what runs on a worker that is cut off from Redis, before another worker can take it. */
export interface Fence {
  /** These claims are in force from now on for the lock's duration. */
  renewed(jobIds: readonly string[]): void;
  forget(jobId: string): void;
  close(): void;
}

/** A look takes at most one share of the lock's duration, and begins one after the last: a claim of 8 shares is given up before its 10th. */
const SHARES = 10;
const WATCHED = 5;
const GIVEN_UP = 8;

/**
 * A claim that could not be renewed runs out in Redis, and another worker takes the activation there while its session goes
 * on here. BullMQ says that a renewal failed only when Redis answers. So a worker whose claims get old looks whether the
 * machine of Redis can be reached. A Redis that is dead or frozen gives nobody a claim: sessions go on, and what ends
 * meanwhile is committed. `lost` hears of each claim that has to be given up.
 */
export function startFence({ target, settings }: Pick<Queues, "target" | "settings">, lost: (jobId: string) => void): Fence {
  const shareMs = settings.lock_duration_ms / SHARES;
  const renewedAt = new Map<string, number>();
  let timer: NodeJS.Timeout | undefined;
  const olderThan = (shares: number): string[] =>
    [...renewedAt].filter(([, at]) => performance.now() - at >= shares * shareMs).map(([jobId]) => jobId);

  async function look(): Promise<void> {
    if (olderThan(WATCHED).length > 0 && !(await redisMachineAnswers(target, shareMs)))
      for (const jobId of olderThan(GIVEN_UP)) {
        renewedAt.delete(jobId);
        lost(jobId);
      }
    if (timer !== undefined) schedule();
  }
  function schedule(): void {
    timer = setTimeout(() => void look(), shareMs);
    timer.unref();
  }
  schedule();

  return {
    renewed(jobIds) {
      for (const jobId of jobIds) renewedAt.set(jobId, performance.now());
    },
    forget: (jobId) => void renewedAt.delete(jobId),
    close() {
      clearTimeout(timer);
      timer = undefined;
    },
  };
}
