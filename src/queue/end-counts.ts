// SPDX-License-Identifier: Apache-2.0
import { activationJobId } from "../contract/identity.ts";
import type { ActivationResult } from "../contract/result.ts";
import { endLabels, endWord, readEndWord, type EndLabels } from "../telemetry/end-labels.ts";
import { keys } from "./names.ts";
import type { Queues } from "./queues.ts";
import { runScript, script } from "./script.ts";

// In one step with the run's own record of it, so that an end that is recorded twice counts once, and that whoever counts the run
// meanwhile finds it in one place. Fields of the fleet's counts are words of closed lists.
const COUNT = script(`
redis.call('SREM', KEYS[3], ARGV[4])
local is_new = redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
if is_new == 1 and ARGV[5] == '1' then redis.call('HINCRBY', KEYS[2], ARGV[3], 1) end
return is_new
`);

const COUNT_SESSION = script(`
if redis.call('SREM', KEYS[2], ARGV[2]) == 0 then return 0 end
return redis.call('HINCRBY', KEYS[1], ARGV[1], 1)
`);

/** Notes how an activation of a run ended, which is then no longer to come, and counts it for the whole fleet unless it is `counted`. */
export async function countEnd({ redis }: Queues, result: ActivationResult, counted: boolean): Promise<void> {
  const { run_id, activation_id, generation, status } = result;
  const names = [keys.statuses(run_id), keys.endCounts, keys.pending(run_id)];
  const jobId = activationJobId(activation_id, generation);
  await runScript(redis, COUNT, names, [activation_id, status, endWord(endLabels(result)), jobId, counted ? "0" : "1"]);
}

/** Counts, once, the end of an activation whose rollout goes on: for the fleet it has ended, for its run it has not. */
export async function countSession({ redis }: Queues, result: ActivationResult): Promise<void> {
  const { run_id, activation_id, generation } = result;
  const names = [keys.endCounts, keys.pending(run_id)];
  await runScript(redis, COUNT_SESSION, names, [endWord(endLabels(result)), activationJobId(activation_id, generation)]);
}

/** Ends since this Redis was first used, by how. */
export async function readEndCounts({ redis }: Queues): Promise<{ labels: EndLabels; count: number }[]> {
  const counts = await redis.hgetall(keys.endCounts);
  return Object.entries(counts).flatMap(([word, count]) => {
    const labels = readEndWord(word);
    return labels === null ? [] : [{ labels, count: Number(count) }];
  });
}
