// SPDX-License-Identifier: Apache-2.0
import { mean } from "simple-statistics";
import { byTask } from "./by-task.ts";
import { estimateMean, type Estimate } from "./estimate.ts";
import type { GatheredRun } from "./gather.ts";
import type { MeasuredRow } from "./metrics.ts";
import { holm, signFlipTest, signTest } from "./paired-tests.ts";
import { sameTasks } from "../rollout/output-dir.ts";
import { submissionEnd, submissionTools } from "./submissions.ts";

/** Below it, a corrected p-value is called a difference beyond noise. */
export const LEVEL = 0.05;

export interface ComparedMeasure {
  name: string;
  unit: "share" | "reward" | "ms" | "tokens" | "calls";
  /** Means over the pairs. */
  first: number | null;
  second: number | null;
  /** Tasks of which both runs know it. */
  pairs: number;
  /** Second minus first, mean over the pairs with its bootstrap interval. */
  difference: Estimate | null;
  /** Pairs that are higher, lower or equal in the second. */
  higher: number;
  lower: number;
  method: "sign" | "sign_flip";
  /** null where there is no pair. */
  p: number | null;
  /** After Holm's correction for all measures of the comparison. */
  p_corrected: number | null;
  beyond_noise: boolean;
}

export interface Comparison {
  schema: "rollcall.comparison/1";
  runs: [ComparedRun, ComparedRun];
  /** Settings that the runs do not share. */
  settings: { name: string; first: unknown; second: unknown }[];
  same_tasks_file: boolean;
  paired_tasks: number;
  only_in_first: string[];
  only_in_second: string[];
  measures: ComparedMeasure[];
}

export interface ComparedRun {
  path: string;
  run_id: string;
  rollouts: number;
  expected: number;
  partial: boolean;
}

type Read = (row: MeasuredRow) => number | null;

/** Puts two runs side by side, task by task; a task counts with the mean of its repeats. Pure. */
export function compareRuns(first: GatheredRun, second: GatheredRun): Comparison {
  const [a, b] = [byTask(first.rows), byTask(second.rows)];
  const paired = [...a.keys()].filter((task) => b.has(task));
  const pairs = paired.map((task): [MeasuredRow[], MeasuredRow[]] => [a.get(task) ?? [], b.get(task) ?? []]);
  const tools = submissionTools([...first.rows, ...second.rows]);
  const someHadTo = [...first.rows, ...second.rows].some(({ required_tools }) => required_tools.length > 0);
  const compared = measuresOf(tools, someHadTo).map(({ name, unit, read }) => compareMeasure(pairs, { name, unit, read }));
  const corrected = holm(compared.map(({ p }) => p));
  return {
    schema: "rollcall.comparison/1",
    runs: [about(first), about(second)],
    settings: differentSettings(first, second),
    same_tasks_file: sameTasks(first.run.manifest.tasks, second.run.manifest.tasks),
    paired_tasks: paired.length,
    only_in_first: [...a.keys()].filter((task) => !b.has(task)),
    only_in_second: [...b.keys()].filter((task) => !a.has(task)),
    measures: compared.map((measure, at) => {
      const p = corrected[at] ?? null;
      return { ...measure, p_corrected: p, beyond_noise: p !== null && p < LEVEL };
    }),
  };
}

function about({ run, rows, metrics }: GatheredRun): ComparedRun {
  return { path: run.path, run_id: metrics.run_id, rollouts: rows.length, expected: metrics.expected, partial: metrics.partial };
}

function differentSettings(first: GatheredRun, second: GatheredRun): Comparison["settings"] {
  const [a, b] = [first.run.manifest.settings, second.run.manifest.settings];
  return [...new Set([...Object.keys(a), ...Object.keys(b)])]
    .sort()
    .filter((name) => JSON.stringify(a[name] ?? null) !== JSON.stringify(b[name] ?? null))
    .map((name) => ({ name, first: a[name] ?? null, second: b[name] ?? null }));
}

function measuresOf(tools: readonly string[], someHadTo: boolean): { name: string; unit: ComparedMeasure["unit"]; read: Read }[] {
  return [
    {
      name: "gradable",
      unit: "share",
      read: ({ status }) => Number(status === "completed" || status === "incomplete"),
    },
    ...(tools.length === 0
      ? []
      : [
          {
            name: `called ${tools.join(" and ")}`,
            unit: "share" as const,
            read: (row: MeasuredRow) =>
              someHadTo && row.required_tools.length === 0 ? null : Number(submissionEnd(row, tools) === "called"),
          },
        ]),
    { name: "reward", unit: "reward", read: ({ reward }) => reward },
    { name: "run time", unit: "ms", read: ({ run_ms }) => run_ms },
    { name: "tokens in", unit: "tokens", read: ({ usage }) => usage?.input_tokens ?? null },
    { name: "tokens out", unit: "tokens", read: ({ usage }) => usage?.output_tokens ?? null },
    { name: "answered model calls", unit: "calls", read: ({ attempts, traffic }) => (attempts.length > 0 ? traffic.answered : null) },
    {
      name: "tool calls",
      unit: "calls",
      read: ({ attempts, tools: used }) => (attempts.length > 0 ? used.reduce((total, { calls }) => total + calls, 0) : null),
    },
  ];
}

function compareMeasure(
  pairs: readonly [MeasuredRow[], MeasuredRow[]][],
  { name, unit, read }: { name: string; unit: ComparedMeasure["unit"]; read: Read },
): Omit<ComparedMeasure, "p_corrected" | "beyond_noise"> {
  const known = pairs.flatMap(([a, b]): [number, number][] => {
    const [x, y] = [meanOf(a, read), meanOf(b, read)];
    return x === null || y === null ? [] : [[x, y]];
  });
  const differences = known.map(([x, y]) => y - x);
  const higher = differences.filter((difference) => difference > 0).length;
  const lower = differences.filter((difference) => difference < 0).length;
  const method = unit === "share" ? "sign" : "sign_flip";
  const p = known.length === 0 ? null : method === "sign" ? signTest(higher, lower) : signFlipTest(differences);
  return {
    name,
    unit,
    first: known.length === 0 ? null : mean(known.map(([x]) => x)),
    second: known.length === 0 ? null : mean(known.map(([, y]) => y)),
    pairs: known.length,
    difference: estimateMean(differences),
    higher,
    lower,
    method,
    p,
  };
}

function meanOf(rows: readonly MeasuredRow[], read: Read): number | null {
  const values = rows.flatMap((row) => read(row) ?? []);
  return values.length === 0 ? null : mean(values);
}
