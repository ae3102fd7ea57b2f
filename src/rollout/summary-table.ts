// SPDX-License-Identifier: Apache-2.0
import Table from "cli-table3";
import { durationText } from "../contract/figures.ts";
import type { BreakerOpening } from "../queue/breaker.ts";
import { budgetText } from "./budget.ts";
import type { Summary } from "./summary.ts";
import { totalsText } from "./usage-totals.ts";

/** The summary for people. Pure. */
export function summaryTable(summary: Summary): string {
  const table = new Table({ style: { head: [], border: [] }, wordWrap: true });
  const row = (name: string, value: string): void => void table.push([name, value]);
  row("run", summary.run_id);
  const { not_started: held, missing, budget } = summary;
  row("tasks", `${summary.total}${held > 0 ? `, ${held} not started (budget)` : ""}${missing > 0 ? `, ${missing} without a result` : ""}`);
  const spent = budget === null ? null : budgetText(budget);
  if (spent !== null) row("budget", spent);
  row("status", counts(summary.by_status) || "none");
  if (Object.keys(summary.by_incomplete_cause).length > 0) row("incomplete because", counts(summary.by_incomplete_cause));
  if (Object.keys(summary.by_failure_kind).length > 0) row("failure kind", counts(summary.by_failure_kind));
  if (Object.keys(summary.by_cause_code).length > 0) row("cause", counts(summary.by_cause_code));
  if (summary.breaker_openings.length > 0) row("paused itself", summary.breaker_openings.map(opening).join("\n"));
  row("sessions per tool", counts(summary.sessions_per_tool) || "none");
  const { usage, required_tools: required, rewards } = summary;
  if (required.sessions > 0)
    row(
      "required tools",
      `called in ${required.called} of ${required.sessions} sessions` +
        (required.called_more_than_once > 0 ? `, more than once in ${required.called_more_than_once}` : ""),
    );
  if (rewards.mean !== null) row("reward", `mean ${rewards.mean.toFixed(3)} over ${rewards.scored} scored`);
  row("model usage", totalsText(usage, amount));
  row("run time", `p50 ${durationText(summary.run_ms.p50)}, p95 ${durationText(summary.run_ms.p95)}`);
  row("wall time", durationText(summary.wall_ms));
  return table.toString();
}

function opening({ opened_at, closed_at, cause_code, untouched }: BreakerOpening): string {
  const ended = closed_at === null ? "not over" : `for ${durationText(Date.parse(closed_at) - Date.parse(opened_at))}`;
  return `${opened_at}: ${cause_code}, ${ended}, ${untouched} tasks untouched`;
}

function counts(record: Readonly<Record<string, number>>): string {
  return Object.entries(record)
    .filter(([, count]) => count > 0)
    .map(([name, count]) => `${count} ${name}`)
    .join(", ");
}

/** "1,234". */
export function amount(value: number): string {
  return value.toLocaleString("en-US");
}
