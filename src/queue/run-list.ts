// SPDX-License-Identifier: Apache-2.0
import { redisNow } from "../redis/clock.ts";
import { keys } from "./names.ts";
import { inPipeline } from "./pipeline.ts";
import type { Queues } from "./queues.ts";
import { runScript, script } from "./script.ts";

/** One run of many, at a glance: counts that Redis has at hand. */
export interface ListedRun {
  run_id: string;
  /** When something of it was queued last; ISO 8601, by the clock of who did. */
  queued_at: string;
  running: number;
  /** Not ended; includes those that run. */
  open: number;
  ended: number;
  /** Of those that ended: with a failure, whatever their status. */
  with_failure: number;
  paused: boolean;
  /** Its breaker is open. */
  held_back: boolean;
}

// Not one that was queued again since it was looked at. ARGV: run ids, each followed by the score it had.
const FORGET = script(`
local gone = 0
for i = 1, #ARGV, 2 do
  if redis.call('ZSCORE', KEYS[1], ARGV[i]) == ARGV[i + 1] then gone = gone + redis.call('ZREM', KEYS[1], ARGV[i]) end
end
return gone
`);

/**
 * Runs of which something is known, those that something was queued of last first, at most `count`, after the run `after`.
 * `next`: give it as `after`; null = there are no more. Forgets those that nothing is left of.
 */
export async function listRuns(
  queues: Queues,
  { after, count, prefix = "" }: { after: string | null; count: number; prefix?: string },
): Promise<{ runs: ListedRun[]; next: string | null }> {
  const { redis } = queues;
  const rank = after === null ? -1 : await redis.zrevrank(keys.runs, after);
  if (rank === null) return { runs: [], next: null }; // forgotten meanwhile
  const runs: ListedRun[] = [];
  for (let from = rank + 1; runs.length < count;) {
    const flat = await redis.zrevrange(keys.runs, from, from + count - runs.length - 1, "WITHSCORES");
    if (flat.length === 0) return { runs, next: null };
    const known = await listed(queues, flat);
    const gone = flat.filter((_, index) => !known.some(({ run_id }) => run_id === flat[index - (index % 2)]));
    const forgotten = gone.length === 0 ? 0 : ((await runScript(redis, FORGET, [keys.runs], gone)) as number);
    runs.push(...known.filter(({ run_id }) => run_id.startsWith(prefix)));
    from += flat.length / 2 - forgotten;
  }
  return { runs, next: runs.at(-1)?.run_id ?? null };
}

/** Without those that nothing is left of. `flat`: run ids, each followed by its score. */
async function listed({ redis }: Queues, flat: readonly string[]): Promise<ListedRun[]> {
  const now = await redisNow(redis);
  const ids = flat.filter((_, index) => index % 2 === 0);
  const replies = await inPipeline(redis, (pipeline) => {
    for (const id of ids) {
      pipeline.exists(keys.pending(id), keys.statuses(id), keys.gate(id), keys.ended(id), keys.rollouts(id));
      pipeline.zcount(keys.running(id), now, "+inf");
      pipeline.scard(keys.pending(id));
      pipeline.scard(keys.rollouts(id));
      pipeline.hlen(keys.statuses(id));
      pipeline.hlen(keys.causes(id));
      pipeline.hmget(keys.gate(id), "paused", "breaker_until");
    }
  });
  return ids.flatMap((run_id, index): ListedRun[] => {
    const [there, running, pending, rollouts, ended, with_failure, [paused, breaker]] = replies.slice(7 * index, 7 * index + 7) as [
      number,
      number,
      number,
      number,
      number,
      number,
      [string | null, string | null],
    ];
    if (there === 0) return [];
    const queued_at = new Date(Number(flat[2 * index + 1])).toISOString();
    const open = Math.max(pending, rollouts); // the activations of rollouts are among those
    return [{ run_id, queued_at, running, open, ended, with_failure, paused: paused === "1", held_back: breaker != null }];
  });
}
