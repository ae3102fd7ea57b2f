// SPDX-License-Identifier: Apache-2.0
import { amount } from "../rollout/summary-table.ts";
import type { Estimate } from "./estimate.ts";
import type { Metrics } from "./metrics.ts";
import type { SubmissionEnd } from "./submissions.ts";

/** What became of a rollout, for people. Pure. */
export function submissionWords(end: SubmissionEnd, tools: readonly string[]): string {
  const names = tools.join(" and ");
  const words: Readonly<Record<SubmissionEnd, string>> = {
    called: `called ${names}`,
    ended_without: `ended without ${names}`,
    limit_without: `limit, without ${names}`,
    none_required: "ended, had no tool to call",
    failed: "failed",
    failed_after_call: `failed after ${names}`,
    refused: "refused",
    cancelled: "cancelled",
    missing: "no result",
  };
  return words[end];
}

/** "217 of 220 (98.6 %)". */
export function share(part: number, whole: number): string {
  return whole === 0 ? `${amount(part)} of 0` : `${amount(part)} of ${amount(whole)} (${((100 * part) / whole).toFixed(1)} %)`;
}

/** At most three decimals, none where there are none. */
export function decimal(value: number | null): string {
  return value === null ? "-" : value.toLocaleString("en-US", { maximumFractionDigits: 3 });
}

/** "0.823 (95 %: 0.79 to 0.85)". */
export function estimateText(estimate: Estimate | null): string {
  if (estimate === null) return "-";
  const { value, interval } = estimate;
  return interval === null ? decimal(value) : `${decimal(value)} (95 %: ${decimal(interval[0])} to ${decimal(interval[1])})`;
}

/** "3 failed, 1 timeout"; "" for none. */
export function countsText(counts: Readonly<Record<string, number>>): string {
  return Object.entries(counts)
    .filter(([, count]) => count > 0)
    .map(([name, count]) => `${amount(count)} ${name}`)
    .join(", ");
}

/** That a report is not of a whole run, and why; null when it is. */
export function partialSentence({
  partial,
  outcomes,
  expected,
  stopped_by,
}: Pick<Metrics, "partial" | "outcomes" | "expected" | "stopped_by">): string | null {
  if (!partial) return null;
  if (stopped_by !== null && outcomes.missing > 0)
    return `The run's budget is spent (${stopped_by}): ${share(outcomes.missing, expected)} rollouts were not started.`;
  if (outcomes.missing === 0) return "The run has not come to its end: these numbers may change.";
  return `The run has not come to its end: ${share(outcomes.missing, expected)} rollouts have no result yet.`;
}
