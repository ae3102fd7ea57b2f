// SPDX-License-Identifier: Apache-2.0
import type { ActivationResult } from "../contract/result.ts";
import { endLabels, endWord, readEndWord, type EndLabels } from "../telemetry/end-labels.ts";
import { keys } from "./names.ts";
import type { Queues } from "./queues.ts";
import { runScript, script } from "./script.ts";

/** In one step with the run's own record of it, so that an end that is recorded twice counts once. Its fields are words of closed lists. */
const COUNT = script(`
local is_new = redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
if is_new == 1 then redis.call('HINCRBY', KEYS[2], ARGV[3], 1) end
return is_new
`);

/** Notes how an activation of a run ended, and counts it for the whole fleet. */
export async function countEnd({ redis }: Queues, result: ActivationResult): Promise<void> {
  const { run_id, activation_id, status } = result;
  await runScript(redis, COUNT, [keys.statuses(run_id), keys.endCounts], [activation_id, status, endWord(endLabels(result))]);
}

/** Ends since this Redis was first used, by how. */
export async function readEndCounts({ redis }: Queues): Promise<{ labels: EndLabels; count: number }[]> {
  const counts = await redis.hgetall(keys.endCounts);
  return Object.entries(counts).flatMap(([word, count]) => {
    const labels = readEndWord(word);
    return labels === null ? [] : [{ labels, count: Number(count) }];
  });
}
