// SPDX-License-Identifier: Apache-2.0
import type { ArtifactStore } from "../artifacts/types.ts";
import type { ActivationResult } from "../contract/result.ts";
import { countOpen } from "../queue/await-ends.ts";
import { endsAfter } from "../queue/ended.ts";
import { keys } from "../queue/names.ts";
import type { Queues } from "../queue/queues.ts";
import type { StreamWatch } from "../queue/stream-watch.ts";
import { asRolloutResult } from "../resources/documents.ts";

const PAGE = 100;
const HEARTBEAT_MS = 15_000;

/**
 * Lines of JSON, one for each end of the run after `cursor`, in their order: `{cursor, activation_id, generation, status, result}`; of a
 * rollout with a resources server one when that is over, with the whole rollout's result. result null where the store has none, or with
 * `bare`. Made one by one as they are read, at most `limit`. With `follow` it goes on as more end (blank lines in between) until all have,
 * or `signal` is aborted. One may come more than once.
 */
export async function* resultLines(
  { queues, watch, store }: { queues: Queues; watch: StreamWatch; store: ArtifactStore },
  runId: string,
  { cursor, limit, follow, bare, signal }: { cursor: string; limit: number; follow: boolean; bare: boolean; signal: AbortSignal },
): AsyncGenerator<string, undefined> {
  let after = cursor;
  for (let left = limit; left > 0 && !signal.aborted;) {
    const open = follow ? await countOpen(queues, runId) : 0; // before the look: what ends later is seen by it
    const page = await endsAfter(queues, runId, { after, count: Math.min(PAGE, left) });
    for (const { id, activation_id, generation, status, rollout = false } of page) {
      const text = bare ? "null" : ((await store.readCommitted(activation_id, generation))?.text ?? "null");
      const committed = JSON.parse(text) as ActivationResult | null;
      const result = (rollout && committed !== null ? await asRolloutResult(store, committed) : null) ?? committed;
      after = id;
      yield `${JSON.stringify({ cursor: id, activation_id, generation, status, result })}\n`;
    }
    left -= page.length;
    if (page.length > 0) continue;
    if (open === 0) return undefined;
    if (!(await watch.changed(keys.ended(runId), after, { signal, timeoutMs: HEARTBEAT_MS }))) yield "\n";
  }
  return undefined;
}
