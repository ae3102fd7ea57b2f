// SPDX-License-Identifier: Apache-2.0
import { mean } from "simple-statistics";
import { quantile } from "../contract/figures.ts";
import { leastCalls } from "../rollout/summary.ts";
import { usageTotals, type UsageTotals } from "../rollout/usage-totals.ts";
import type { ModelTraffic } from "./model-traffic.ts";
import type { RecordedRun } from "./read-run.ts";
import { measureRewards, type RewardMetrics } from "./reward-metrics.ts";
import type { RolloutRow } from "./rollout-row.ts";
import { countSubmissions, submissionTools, type Submissions } from "./submissions.ts";
import { measureTools, type ToolMetrics } from "./tool-metrics.ts";

/** A rollout with all that is known of its model calls. */
export type MeasuredRow = RolloutRow & { traffic: ModelTraffic };

/** How a quantity spreads over the rollouts of which it is known (`n`). */
export interface Spread {
  n: number;
  total: number;
  mean: number | null;
  p50: number | null;
  p95: number | null;
  max: number | null;
}

/** Why rollouts did not end as they should, with one of them. */
interface CauseGroup {
  cause: string;
  status: RolloutRow["status"];
  cause_class: string | null;
  count: number;
  example: { activation_id: string; task_id: string; reason: string | null };
}

export interface Metrics {
  schema: "rollcall.metrics/1";
  run_id: string;
  created_at: string;
  tasks_path: string;
  /** As the responses name them. */
  models: string[];
  /** The run still goes on, or was stopped with tasks left. */
  partial: boolean;
  /** The denominator of everything that does not name another one. */
  expected: number;
  expected_from: "summary.json" | "results.jsonl";
  outcomes: Record<RolloutRow["status"] | "missing", number>;
  /** The limit of the budget because of which the missing were not started. */
  stopped_by: string | null;
  /** Rollouts of which a session was started at least once. */
  started: number;
  submissions: Submissions | null;
  timeouts: { wall_clock: number; idle: number };
  causes: CauseGroup[];
  attempts: { total: number; failed_by_cause: Record<string, number> };
  model_calls: {
    /** Answered calls by rollout; n = started rollouts of which all attempts are known. */
    answered: Spread;
    unknown_rollouts: number;
    /** "200" and what Codex tells of errors; see docs/reports.md for the classes. */
    by_status: Record<string, number>;
    /** Rollouts whose errors are not all known. */
    errors_unknown_rollouts: number;
    context_length_errors: number;
  };
  /** Of all attempts of all rollouts, as in summary.json. */
  usage: UsageTotals;
  /** By rollout, all attempts together; n = rollouts of which the kind is told. */
  tokens: Record<"input" | "cached_input" | "cache_write_input" | "output" | "reasoning_output", Spread>;
  tools: ToolMetrics[];
  run_ms: Spread;
  rewards: RewardMetrics | null;
  /** Files in which a secret was found. */
  quarantined_artifacts: number;
}

/** The numbers of a run. Pure. */
export function measure(
  run: RecordedRun,
  rows: readonly MeasuredRow[],
  failedAttempts: Record<string, number>,
  { passThreshold }: { passThreshold: number },
): Metrics {
  const expected = Math.max(run.total ?? 0, rows.length);
  const outcomes = { completed: 0, incomplete: 0, failed: 0, refused: 0, cancelled: 0, missing: expected - rows.length };
  for (const { status } of rows) outcomes[status]++;
  const started = rows.filter(({ attempts }) => attempts.length > 0);
  const tools = submissionTools(rows);
  return {
    schema: "rollcall.metrics/1",
    run_id: run.manifest.run_id,
    created_at: run.manifest.created_at,
    tasks_path: run.manifest.tasks.path,
    models: [...new Set(rows.flatMap(({ model }) => model ?? []))].sort().slice(0, 20),
    stopped_by: run.stopped_by,
    partial: run.running || run.interrupted || outcomes.missing > 0,
    expected,
    expected_from: run.total === null || run.total < rows.length ? "results.jsonl" : "summary.json",
    outcomes,
    started: started.length,
    submissions: countSubmissions(rows, tools, outcomes.missing),
    timeouts: {
      wall_clock: rows.filter(({ incomplete_cause }) => incomplete_cause === "wall_clock").length,
      idle: rows.filter(({ incomplete_cause }) => incomplete_cause === "idle").length,
    },
    causes: groupCauses(rows),
    attempts: { total: rows.reduce((total, { attempts }) => total + attempts.length, 0), failed_by_cause: failedAttempts },
    model_calls: measureModelCalls(started),
    usage: usageTotals(rows),
    tokens: {
      input: spread(rows.flatMap(({ usage }) => usage?.input_tokens ?? [])),
      cached_input: spread(rows.flatMap(({ usage }) => usage?.cached_input_tokens ?? [])),
      cache_write_input: spread(rows.flatMap(({ usage }) => usage?.cache_write_input_tokens ?? [])),
      output: spread(rows.flatMap(({ usage }) => usage?.output_tokens ?? [])),
      reasoning_output: spread(rows.flatMap(({ usage }) => usage?.reasoning_output_tokens ?? [])),
    },
    tools: measureTools(rows),
    run_ms: spread(rows.flatMap(({ run_ms }) => run_ms ?? [])),
    rewards: measureRewards(rows, { expected, threshold: passThreshold }),
    quarantined_artifacts: rows.reduce((total, { quarantined }) => total + quarantined, 0),
  };
}

/** What is to be told of how a rollout ended; null = it ended as it should. Pure. */
export function causeOf(row: RolloutRow): string | null {
  if (row.cause_code !== null) return row.cause_code;
  if (row.incomplete_cause !== null) return row.incomplete_cause;
  if (row.status !== "completed") return row.status;
  const { required_tools, tools_called } = row;
  return required_tools.length > 0 && leastCalls(tools_called, required_tools) === 0 ? "required_tool_not_called" : null;
}

function groupCauses(rows: readonly RolloutRow[]): CauseGroup[] {
  const groups = new Map<string, CauseGroup>();
  for (const row of rows) {
    const cause = causeOf(row);
    if (cause === null) continue;
    const key = JSON.stringify([row.status, cause]);
    const { activation_id, task_id, reason, status, cause_class } = row;
    const group = groups.get(key) ?? { cause, status, cause_class, count: 0, example: { activation_id, task_id, reason } };
    groups.set(key, group);
    group.count++;
  }
  return [...groups.values()].sort((a, b) => b.count - a.count || a.cause.localeCompare(b.cause));
}

function measureModelCalls(started: readonly MeasuredRow[]): Metrics["model_calls"] {
  const answered = spread(started.flatMap(({ traffic }) => traffic.answered ?? []));
  const byStatus: Record<string, number> = answered.total > 0 ? { "200": answered.total } : {};
  for (const { traffic } of started)
    for (const [status, count] of Object.entries(traffic.errors)) byStatus[status] = (byStatus[status] ?? 0) + count;
  return {
    answered,
    unknown_rollouts: started.length - answered.n,
    by_status: byStatus,
    errors_unknown_rollouts: started.filter(({ traffic }) => !traffic.errors_known).length,
    context_length_errors: byStatus["context_length"] ?? 0,
  };
}

/** How values are spread. Pure. */
export function spread(values: readonly number[]): Spread {
  const sorted = [...values].sort((a, b) => a - b);
  const last = sorted.at(-1);
  if (last === undefined) return { n: 0, total: 0, mean: null, p50: null, p95: null, max: null };
  return {
    n: sorted.length,
    total: sorted.reduce((total, value) => total + value, 0),
    mean: mean(sorted),
    p50: quantile(sorted, 0.5),
    p95: quantile(sorted, 0.95),
    max: last,
  };
}
