// SPDX-License-Identifier: Apache-2.0
import { leastCalls } from "../rollout/summary.ts";
import type { RolloutRow } from "./rollout-row.ts";

/** What a rollout made of the tool that hands work in; each rollout has exactly one. */
export const SUBMISSION_ENDS = [
  "called",
  "ended_without",
  "limit_without",
  "none_required",
  "failed",
  "failed_after_call",
  "refused",
  "cancelled",
  "missing",
] as const;
export type SubmissionEnd = (typeof SUBMISSION_ENDS)[number];

export interface Submissions {
  /** The tools that hand work in. */
  tools: string[];
  /** They add up to the expected rollouts. */
  by_end: Record<SubmissionEnd, number>;
  /** Of those that called, how many did so more than once. */
  called_more_than_once: number;
  /** Of those that called, how many a limit ended nevertheless. */
  called_before_limit: number;
}

/** The tools that rollouts required, else "finish" where one called it, else none. Pure. */
export function submissionTools(rows: readonly Pick<RolloutRow, "required_tools" | "tools_called">[]): string[] {
  const required = new Set(rows.flatMap(({ required_tools }) => required_tools));
  if (required.size > 0) return [...required].sort();
  return rows.some(({ tools_called }) => (tools_called["finish"] ?? 0) > 0) ? ["finish"] : [];
}

/**
 * How often a rollout handed in: of the tools that it had to call, the one called least counts; of one that had to call none, any of
 * the run's. Pure.
 */
function submissionCalls(
  { required_tools, tools_called }: Pick<RolloutRow, "required_tools" | "tools_called">,
  tools: readonly string[],
): number {
  if (required_tools.length > 0) return leastCalls(tools_called, required_tools);
  return Math.max(0, ...tools.map((tool) => leastCalls(tools_called, [tool])));
}

/** Pure. */
export function submissionEnd(row: RolloutRow, tools: readonly string[]): Exclude<SubmissionEnd, "missing" | "none_required"> {
  const called = submissionCalls(row, tools) > 0;
  switch (row.status) {
    case "completed":
      return called ? "called" : "ended_without";
    case "incomplete":
      return called ? "called" : "limit_without";
    case "failed":
      return called ? "failed_after_call" : "failed";
    case "refused":
    case "cancelled":
      return row.status;
    default:
      return row.status satisfies never;
  }
}

/** null when no tool hands work in. Pure. */
export function countSubmissions(rows: readonly RolloutRow[], tools: readonly string[], missing: number): Submissions | null {
  if (tools.length === 0) return null;
  const byEnd = Object.fromEntries(SUBMISSION_ENDS.map((end) => [end, 0])) as Submissions["by_end"];
  byEnd.missing = missing;
  const someHadTo = rows.some(({ required_tools }) => required_tools.length > 0);
  let [again, late] = [0, 0];
  for (const row of rows) {
    const without = submissionEnd(row, tools);
    const hadNoneToCall = someHadTo && row.required_tools.length === 0 && (without === "ended_without" || without === "limit_without");
    const end = hadNoneToCall ? "none_required" : without;
    byEnd[end]++;
    if (end !== "called") continue;
    if (submissionCalls(row, tools) > 1) again++;
    if (row.status === "incomplete") late++;
  }
  return { tools: [...tools], by_end: byEnd, called_more_than_once: again, called_before_limit: late };
}
