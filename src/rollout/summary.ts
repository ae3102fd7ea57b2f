// SPDX-License-Identifier: Apache-2.0
import { readFile } from "node:fs/promises";
import { mean } from "simple-statistics";
import { quantile } from "../contract/figures.ts";
import type { BreakerOpening } from "../queue/breaker.ts";
import type { Spending } from "./budget.ts";
import type { ResultFacts } from "./facts.ts";
import { usageTotals, type UsageTotals } from "./usage-totals.ts";

export interface Summary {
  schema: "rollcall.summary/1";
  run_id: string;
  /** Rollouts that the command line asks for. */
  total: number;
  /** Of those, without a result: because the budget was spent, and for another reason. */
  not_started: number;
  missing: number;
  by_status: Record<ResultFacts["status"], number>;
  by_failure_kind: Record<string, number>;
  by_cause_code: Record<string, number>;
  by_incomplete_cause: Record<string, number>;
  startup_failures: number;
  /** Activations with at least one attempt; not those refused or cancelled before. */
  started: number;
  /** Attempts of the counted results. */
  attempts: number;
  /** Sessions in which the tool was called successfully at least once. */
  sessions_per_tool: Record<string, number>;
  /** Sessions that had to call tools; those that called each of them, and those that called each more than once. */
  required_tools: { sessions: number; called: number; called_more_than_once: number };
  /** Over the scored results only: `rollcall report` says more. */
  rewards: { scored: number; mean: number | null };
  /** Of all attempts of the counted results. */
  usage: UsageTotals;
  run_ms: { p50: number | null; p95: number | null };
  /** The commands of all starts of the run together, by a clock that nobody sets. Collecting and verifying anew leave it as it is. */
  wall_ms: number;
  interrupted: boolean;
  /** What the run has used, and what it may use. null: of an earlier version. */
  budget: Spending | null;
  /** When the run paused itself because different tasks failed alike, the newest last; earlier starts included. */
  breaker_openings: BreakerOpening[];
  /** Of a run with a resources server: results that could be scored and have no reward. */
  unverified?: number;
}

export interface SummaryInput {
  runId: string;
  total: number;
  wallMs: number;
  interrupted: boolean;
  openings?: BreakerOpening[];
  budget?: Spending | null;
}

/** summary.json of the last start; null: there is none, or it is torn. */
export async function readSummary(path: string): Promise<Summary | null> {
  try {
    return JSON.parse(await readFile(path, "utf8")) as Summary;
  } catch {
    return null;
  }
}

/** Counts the results of a batch; one per activation. Pure. */
export function summarise(
  results: Iterable<ResultFacts>,
  { runId, total, wallMs, interrupted, openings = [], budget = null }: SummaryInput,
): Summary {
  const byStatus: Summary["by_status"] = { completed: 0, incomplete: 0, failed: 0, refused: 0, cancelled: 0 };
  const counts = { kind: new Counter(), cause: new Counter(), incomplete: new Counter(), tools: new Counter() };
  const counted: ResultFacts[] = [];
  const runMs: number[] = [];
  const required: Summary["required_tools"] = { sessions: 0, called: 0, called_more_than_once: 0 };
  const rewards: number[] = [];
  let unverified: number | null = null;
  let [ended, startupFailures, started, attempts] = [0, 0, 0, 0];
  for (const facts of results) {
    ended++;
    byStatus[facts.status]++;
    attempts += facts.attempts;
    if (facts.failure !== null) {
      counts.kind.add(facts.failure.failure_kind);
      counts.cause.add(facts.failure.cause_code);
    }
    if (facts.incomplete_cause !== null) counts.incomplete.add(facts.incomplete_cause);
    if (facts.startup_failed) startupFailures++;
    if (facts.attempts > 0) started++;
    for (const [tool, calls] of Object.entries(facts.evidence?.tools_called ?? {})) if (calls > 0) counts.tools.add(tool);
    if (facts.evidence !== null && facts.evidence.required_tools.length > 0) {
      const calls = leastCalls(facts.evidence.tools_called, facts.evidence.required_tools);
      required.sessions++;
      if (calls > 0) required.called++;
      if (calls > 1) required.called_more_than_once++;
    }
    if (facts.reward !== null) rewards.push(facts.reward);
    counted.push(facts);
    if (facts.rollout !== undefined)
      unverified = (unverified ?? 0) + (!facts.rollout.verified && (facts.status === "completed" || facts.status === "incomplete") ? 1 : 0);
    if (facts.timing !== null && facts.attempts > 0) runMs.push(facts.timing.run_ms);
  }
  runMs.sort((a, b) => a - b);
  const left = Math.max(0, total - ended);
  const isBudgetStopped = budget !== null && budget.stopped_by !== null;
  return {
    schema: "rollcall.summary/1",
    run_id: runId,
    total,
    not_started: isBudgetStopped ? left : 0,
    missing: isBudgetStopped ? 0 : left,
    by_status: byStatus,
    by_failure_kind: counts.kind.sorted(),
    by_cause_code: counts.cause.sorted(),
    by_incomplete_cause: counts.incomplete.sorted(),
    startup_failures: startupFailures,
    started,
    attempts,
    sessions_per_tool: counts.tools.sorted(),
    required_tools: required,
    rewards: { scored: rewards.length, mean: rewards.length === 0 ? null : mean(rewards) },
    usage: usageTotals(counted),
    run_ms: { p50: quantile(runMs, 0.5), p95: quantile(runMs, 0.95) },
    wall_ms: Math.round(wallMs),
    interrupted,
    budget,
    breaker_openings: openings,
    ...(unverified === null ? {} : { unverified }),
  };
}

/** How often the tool that was called least was called. Pure. */
export function leastCalls(toolsCalled: Readonly<Record<string, number>>, tools: readonly string[]): number {
  return Math.min(...tools.map((tool) => (Object.hasOwn(toolsCalled, tool) ? (toolsCalled[tool] ?? 0) : 0)));
}

class Counter {
  readonly #counts = new Map<string, number>();

  add(name: string): void {
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1);
  }

  /** Most frequent first. */
  sorted(): Record<string, number> {
    return Object.fromEntries([...this.#counts].sort(([a, m], [b, n]) => n - m || a.localeCompare(b)));
  }
}
