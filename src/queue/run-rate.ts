// SPDX-License-Identifier: Apache-2.0
import { redisNow } from "../redis/clock.ts";
import { keys } from "./names.ts";
import type { Queues } from "./queues.ts";

const WINDOW_MS = 600_000;
const MOST_ENDS = 1_000;

export interface RunRate {
  /** Of late: over ten minutes, or as many as the last 1,000 ends took; null before the second end of them. */
  ended_per_minute: number | null;
  /** At that rate; null: it cannot be told. */
  eta_seconds: number | null;
}

/** How fast a run's activations end, and when the `left` ones will have. */
export async function runRate({ redis }: Queues, runId: string, left: number): Promise<RunRate> {
  const [now, ends] = await Promise.all([redisNow(redis), redis.xrevrange(keys.ended(runId), "+", "-", "COUNT", MOST_ENDS)]);
  return rateOf(
    ends.map(([id]) => Number(id.split("-")[0])),
    { now, left },
  );
}

/** `ends`: when the last ones ended, newest first, ms since 1970. Pure. */
export function rateOf(ends: readonly number[], { now, left }: { now: number; left: number }): RunRate {
  const recent = ends.filter((at) => now - at <= WINDOW_MS);
  const first = recent.at(-1);
  if (recent.length < 2 || first === undefined || now <= first) return { ended_per_minute: null, eta_seconds: left === 0 ? 0 : null };
  const perMs = (recent.length - 1) / (now - first); // the first one opens the time that is looked at
  return { ended_per_minute: perMs * 60_000, eta_seconds: Math.ceil(left / perMs / 1_000) };
}
