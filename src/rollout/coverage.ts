// SPDX-License-Identifier: Apache-2.0
import type { ResultFacts } from "./facts.ts";

/** What became of every rollout that was asked for; each of them is in exactly one of the counts. */
export interface Coverage {
  schema: "rollcall.coverage/1";
  run_id: string;
  /** Rows times repeats. */
  expected: number;
  completed: number;
  incomplete: number;
  failed: number;
  refused: number;
  cancelled: number;
  /** Without a result, because the run's budget was spent. */
  not_started: number;
  not_started_because: "budget" | null;
  /** Without a result for another reason. */
  missing: number;
  /** The counts sum up to `expected`. */
  reconciled: boolean;
  /** All have a result. */
  complete: boolean;
  /** Results in results.jsonl that were not asked for, e.g. of an earlier start with a higher --limit; not counted above. */
  not_asked: number;
  /** The first {@link MAX_NAMED} without a result, in the task file's order. */
  missing_ids: string[];
}

const MAX_NAMED = 1_000;

/** Counts by the ids that were asked for, not by the results that are there. Pure. */
export function coverageOf(
  recorded: ReadonlyMap<string, Pick<ResultFacts, "status">>,
  asked: { runId: string; expected: number; ids: readonly string[]; budgetStopped: boolean },
): Coverage {
  const by: Record<ResultFacts["status"], number> = { completed: 0, incomplete: 0, failed: 0, refused: 0, cancelled: 0 };
  const ids = new Set(asked.ids);
  const missing: string[] = [];
  for (const id of ids) {
    const facts = recorded.get(id);
    if (facts === undefined) missing.push(id);
    else by[facts.status]++;
  }
  const [notStarted, left] = asked.budgetStopped ? [missing.length, 0] : [0, missing.length];
  const ended = Object.values(by).reduce((sum, count) => sum + count, 0);
  return {
    schema: "rollcall.coverage/1",
    run_id: asked.runId,
    expected: asked.expected,
    ...by,
    not_started: notStarted,
    not_started_because: notStarted > 0 ? "budget" : null,
    missing: left,
    reconciled: ended + missing.length === asked.expected,
    complete: missing.length === 0,
    not_asked: recorded.size - ended,
    missing_ids: missing.slice(0, MAX_NAMED),
  };
}
