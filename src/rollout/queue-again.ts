// SPDX-License-Identifier: Apache-2.0
import type { BreakerMode } from "../queue/breaker-mode.ts";
import type { BudgetWatch } from "./budget.ts";
import type { Enqueuer } from "./enqueuer.ts";
import type { Fleet } from "./fleet.ts";
import type { WorkPlan } from "./plan.ts";
import type { Tally } from "./tally.ts";

/**
 * For a queue that has lost the run: what ended is taken in from the store, and the rest is queued anew, with the budget that is left.
 * May be done again after it failed half-way. Throws RollcallError when the tasks cannot be queued any more.
 */
export async function queueAgain(run: {
  runId: string;
  fleet: Fleet;
  budget: BudgetWatch;
  breaker: BreakerMode;
  tally: Tally;
  plan: WorkPlan;
  enqueuerOf: (plan: WorkPlan) => Enqueuer;
  say: (text: string) => void;
  signal: AbortSignal;
}): Promise<void> {
  const { runId, fleet, budget, tally, plan, say, signal } = run;
  if (signal.aborted) return;
  await tally.sweep();
  const work = new Map([...plan.work].filter(([id]) => tally.isPending(id)));
  say(
    `Redis has lost this run (it was emptied, or came back without its data): ${work.size} tasks are queued again; the others have ended`,
  );
  await budget.begin(fleet);
  const enqueuer = run.enqueuerOf({ ...plan, work });
  try {
    await enqueuer.next(Number.POSITIVE_INFINITY, signal);
  } finally {
    await enqueuer.close();
  }
  await fleet.setBreaker(runId, run.breaker); // last: it says that the queue knows the run
}
