// SPDX-License-Identifier: Apache-2.0
import { runsAgain, type RetryPolicy } from "./again.ts";
import type { Fleet } from "./fleet.ts";
import type { ResultsFiles } from "./results-files.ts";

/** What a start of a batch has to do. */
export interface WorkPlan {
  /** Activations to run, in the task file's order. again: it has ended before, so it needs a new generation. */
  work: Map<string, { again: boolean }>;
  /** Ended before, and stays so. */
  done: number;
  /** Results of the store that results.jsonl lacked. */
  recovered: number;
  /** Recorded in results.jsonl, but gone from the store. */
  vanished: number;
  /** Of `work`: their result in the store is torn or gone, so they count as not ended. */
  damaged: string[];
  /** Of `work`: ended before, and run again by policy. */
  again: number;
}

/**
 * Decides which activations run. A task has ended when its result is in the store AND in results.jsonl: what only the
 * store has (a crash before the append) is taken in here; what only results.jsonl has was deleted by hand, and runs. An empty
 * store says that the evidence was moved away as a whole; then results.jsonl alone counts.
 */
export async function planWork(ids: readonly string[], files: ResultsFiles, fleet: Fleet, policy: RetryPolicy): Promise<WorkPlan> {
  const stored = new Set<string>();
  for await (const id of fleet.listEnded()) stored.add(id);
  const plan: WorkPlan = { work: new Map(), done: 0, recovered: 0, vanished: 0, damaged: [], again: 0 };
  for (const id of ids) {
    if (stored.has(id) && (needsLook(id) || wantsAgain(id))) {
      const result = await fleet.readResult(id);
      if (result !== null && (await files.take(result))) plan.recovered++;
      if (result === null) plan.damaged.push(id);
    }
    const facts = files.recorded.get(id);
    if (facts === undefined) plan.work.set(id, { again: false });
    else if (facts.refused_row) plan.work.set(id, { again: true }); // its refusal may be in the store
    else if (stored.size > 0 && !stored.has(id)) {
      files.forget(id);
      plan.vanished++;
      plan.work.set(id, { again: true });
    } else if (wantsAgain(id)) {
      plan.again++;
      plan.work.set(id, { again: true });
    } else plan.done++;
  }
  return plan;

  function needsLook(id: string): boolean {
    const facts = files.recorded.get(id);
    return facts === undefined || facts.refused_row;
  }

  function wantsAgain(id: string): boolean {
    const facts = files.recorded.get(id);
    return facts !== undefined && runsAgain(facts, policy);
  }
}

/** The plan in a sentence or two; null when it is a plain first start. Pure. */
export function describePlan(plan: WorkPlan): string | null {
  const parts = [
    plan.done > 0 ? `${plan.done} done before` : "",
    plan.recovered > 0 ? `${plan.recovered} taken in from the store` : "",
    plan.vanished > 0 ? `${plan.vanished} with a line in results.jsonl but no result in the store: run again` : "",
    plan.damaged.length > 0 ? `${plan.damaged.length} whose result in the store is torn or gone (${some(plan.damaged)}): run again` : "",
    plan.again > 0 ? `${plan.again} ended before and run again` : "",
  ].filter((part) => part !== "");
  if (parts.length === 0) return null;
  return `going on: ${parts.join(", ")}; ${plan.work.size === 0 ? "nothing is left to run" : `${plan.work.size} to run`}`;
}

function some(ids: readonly string[]): string {
  return `${ids.slice(0, 5).join(", ")}${ids.length > 5 ? ", ..." : ""}`;
}
