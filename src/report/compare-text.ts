// SPDX-License-Identifier: Apache-2.0
import Table from "cli-table3";
import { printable } from "../printable.ts";
import { durationText } from "../contract/figures.ts";
import { amount } from "../rollout/summary-table.ts";
import { type ComparedMeasure, type ComparedRun, type Comparison, LEVEL } from "./compare.ts";
import { decimal } from "./words.ts";

const MOST_LISTED = 20;
const MAX_SETTING = 120;

/** A comparison for people. Pure. */
export function comparisonText(comparison: Comparison): string {
  const { runs, paired_tasks, settings, same_tasks_file } = comparison;
  const lines = [
    ...runs.map((run, at) => `${at === 0 ? "first " : "second"}  ${runText(run)}`),
    ...(same_tasks_file ? [] : ["the runs have different task files: tasks are paired by their ids"]),
    ...settings.map(
      ({ name, first, second }) => `setting ${name}: ${settingText(first)} in the first, ${settingText(second)} in the second`,
    ),
    `${amount(paired_tasks)} tasks are in both`,
    ...listText("only in the first", comparison.only_in_first),
    ...listText("only in the second", comparison.only_in_second),
  ].map(printable);
  if (paired_tasks === 0) return `${lines.join("\n")}\nNothing can be compared.`;
  return [...lines, measuresTable(comparison.measures), ...conclusion(comparison.measures), ...METHOD].join("\n");
}

const METHOD = [
  "A task counts with the mean of its repeats, and for a measure only where both runs know it. Gradable: completed or incomplete. Shares: exact sign test (McNemar's, with one repeat).",
  `Others: sign-flip test of the mean difference. p is corrected for the number of measures (Holm); beyond noise: below ${LEVEL}. Intervals: 95 %, bootstrap over tasks.`,
];

function runText({ path, run_id, rollouts, expected, partial }: ComparedRun): string {
  return `${path}: run ${run_id}, ${amount(rollouts)} of ${amount(expected)} rollouts ended${partial ? ", NOT COMPLETE" : ""}`;
}

function settingText(value: unknown): string {
  const text = JSON.stringify(value);
  return text.length <= MAX_SETTING ? text : `${text.slice(0, MAX_SETTING)} ...`;
}

function listText(title: string, tasks: readonly string[]): string[] {
  if (tasks.length === 0) return [];
  const left = tasks.length - MOST_LISTED;
  return [`${title}: ${amount(tasks.length)}: ${tasks.slice(0, MOST_LISTED).join(", ")}${left > 0 ? ` and ${amount(left)} more` : ""}`];
}

function measuresTable(measures: readonly ComparedMeasure[]): string {
  const head = ["", "first", "second", "difference (95 %)", "tasks (up/down)", "p", "beyond noise"];
  const table = new Table({
    head,
    chars: { mid: "", "left-mid": "", "mid-mid": "", "right-mid": "" },
    style: { head: [], border: [] },
    colAligns: ["left", ...head.slice(1).map(() => "right" as const)],
  });
  for (const measure of measures) table.push(measureCells(measure));
  return table.toString();
}

function measureCells({
  name,
  unit,
  first,
  second,
  difference,
  pairs,
  higher,
  lower,
  p_corrected,
  beyond_noise,
}: ComparedMeasure): string[] {
  const value = (number: number | null): string => (number === null ? "-" : VALUE_TEXT[unit](number));
  const interval =
    difference?.interval == null ? "" : ` (${signed(unit, difference.interval[0])} to ${signed(unit, difference.interval[1])})`;
  return [
    printable(name),
    value(first),
    value(second),
    difference === null ? "-" : `${signed(unit, difference.value)}${interval}`,
    `${amount(pairs)} (${amount(higher)}/${amount(lower)})`,
    p_corrected === null ? "-" : p_corrected < 0.001 ? "< 0.001" : p_corrected.toFixed(3),
    p_corrected === null ? "-" : beyond_noise ? "yes" : "no",
  ];
}

const VALUE_TEXT: Readonly<Record<ComparedMeasure["unit"], (value: number) => string>> = {
  share: (value) => `${(value * 100).toFixed(1)} %`,
  reward: decimal,
  ms: durationText,
  tokens: (value) => amount(Math.round(value)),
  calls: (value) => decimal(Math.round(value * 10) / 10),
};

function signed(unit: ComparedMeasure["unit"], value: number): string {
  const text = VALUE_TEXT[unit](Math.abs(value));
  return value === 0 ? text : `${value < 0 ? "-" : "+"}${text}`;
}

function conclusion(measures: readonly ComparedMeasure[]): string[] {
  const beyond = measures.filter(({ beyond_noise }) => beyond_noise);
  if (beyond.length === 0) return ["No difference is beyond noise."];
  const told = beyond.map(
    ({ name, difference }) => `${printable(name)} (${(difference?.value ?? 0) < 0 ? "lower" : "higher"} in the second)`,
  );
  return [`Beyond noise: ${told.join(", ")}.`];
}
