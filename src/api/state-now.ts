// SPDX-License-Identifier: Apache-2.0
import type { z } from "@hono/zod-openapi";
import type { FoundActivation } from "../queue/find-activation.ts";
import type { RolloutNow } from "../resources/find-rollouts.ts";
import { keys } from "../queue/names.ts";
import { inPipeline } from "../queue/pipeline.ts";
import { parseEntry } from "../queue/progress.ts";
import type { Queues } from "../queue/queues.ts";
import { timeIn } from "../redis/clock.ts";
import { stateView, type stateReply } from "./messages.ts";

type Found = FoundActivation & { rollout?: RolloutNow | null };

/** With its last event and, of one that waits, its place in the queue. */
export async function stateNow(queues: Queues, found: Found): Promise<z.infer<typeof stateReply>> {
  return (await statesNow(queues, [found]))[0]!;
}

export async function statesNow(queues: Queues, found: readonly Found[]): Promise<z.infer<typeof stateReply>[]> {
  const { activations } = queues;
  const [time, ahead, ...replies] = await inPipeline(queues.redis, (pipeline) => {
    pipeline.time();
    pipeline.llen(activations.toKey("wait")); // those go before all that have a priority
    for (const { activation_id, job_id } of found) {
      pipeline.xrevrange(keys.progress(activation_id), "+", "-", "COUNT", 1);
      pipeline.zrank(activations.toKey("prioritized"), job_id);
    }
  });
  const now = timeIn(time as [string, string]);
  return found.map((each, index) => {
    const [last] = replies[2 * index] as [id: string, fields: string[]][];
    const rank = replies[2 * index + 1] as number | null;
    return stateView(each, {
      last: last === undefined ? null : parseEntry(...last),
      idleMs: last === undefined ? null : Math.max(0, now - Number(last[0].split("-")[0])),
      position: rank === null || each.state !== "waiting" ? null : rank + (ahead as number),
    });
  });
}
