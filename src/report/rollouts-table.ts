// SPDX-License-Identifier: Apache-2.0
import { durationText } from "../contract/figures.ts";
import { amount } from "../rollout/summary-table.ts";
import { causeOf, type MeasuredRow } from "./metrics.ts";
import { decimal } from "./words.ts";

/** One line of the table of rollouts: what is shown, and what it is sorted by. */
export interface RolloutLine {
  cells: { text: string; sort: string | number; numeric: boolean; detail?: string }[];
  status: string;
}

const HEAD = ["Task", "Status", "Rollout", "Cause", "Reward", "Time", "Model calls", "Tool calls", "Tokens", "Attempts"];
const REWARD = HEAD.indexOf("Reward");

/** Those that need a look first: by status, then in their order. Where none has a reward there is no column for it. Pure. */
export function rolloutsTable(rows: readonly MeasuredRow[]): { head: string[]; lines: RolloutLine[] } {
  const isScored = rows.some(({ reward }) => reward !== null);
  const isShown = (_: unknown, at: number): boolean => isScored || at !== REWARD;
  const lines = linesOf(rows).map((line) => ({ ...line, cells: line.cells.filter(isShown) }));
  return { head: HEAD.filter(isShown), lines };
}

function linesOf(rows: readonly MeasuredRow[]): RolloutLine[] {
  return rows
    .map((row) => ({ row, cause: causeOf(row) }))
    .sort((a, b) => urgency(a.row.status, a.cause) - urgency(b.row.status, b.cause))
    .map(({ row, cause }) => ({ status: row.status, cells: cellsOf(row, cause) }));
}

function urgency(status: MeasuredRow["status"], cause: string | null): number {
  const at = ["failed", "refused", "cancelled", "incomplete", "completed"].indexOf(status);
  return cause === null ? at + 1 : at;
}

function cellsOf(row: MeasuredRow, cause: string | null): RolloutLine["cells"] {
  const calls = row.tools.reduce((total, tool) => total + tool.calls, 0);
  const text = (shown: string, detail?: string) => ({
    text: shown,
    sort: shown,
    numeric: false,
    ...(detail === undefined ? {} : { detail }),
  });
  const number = (value: number | null, shown: (value: number) => string = amount) => ({
    text: value === null ? "-" : shown(value),
    sort: value ?? -1,
    numeric: true,
  });
  return [
    text(row.task_id),
    text(row.status),
    text(row.activation_id),
    text(cause ?? "", row.reason ?? undefined),
    number(row.reward, decimal),
    number(row.run_ms, durationText),
    number(row.attempts.length > 0 ? row.traffic.answered : null),
    number(calls),
    number(row.usage?.total_tokens ?? null),
    number(row.attempts.length),
  ];
}
