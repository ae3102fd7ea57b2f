// SPDX-License-Identifier: Apache-2.0
import {
  type Bar,
  barsOption,
  type ChartColors,
  type ChartOption,
  COUNT_WIDTHS,
  histogram,
  histogramOption,
  REWARD_WIDTHS,
  TIME_WIDTHS,
  timeLabel,
} from "./chart-options.ts";
import type { GatheredRun } from "./gather.ts";
import { SUBMISSION_ENDS } from "./submissions.ts";
import { decimal, submissionWords } from "./words.ts";

export interface ReportChart {
  title: string;
  /** The same in words, for whoever does not see it. */
  text: string;
  height: number;
  readonly option: (width: number) => ChartOption;
}

const MAX_TOOLS = 12;
const BAR_HEIGHT = 30;

/** The charts of a report; those without data are left out. Pure. */
export function reportCharts({ metrics, rows }: Pick<GatheredRun, "metrics" | "rows">, colors: ChartColors): ReportChart[] {
  const rewards = rows.flatMap(({ reward }) => reward ?? []);
  const times = rows.flatMap(({ run_ms }) => run_ms ?? []);
  const calls = rows.flatMap(({ attempts, traffic }) => (attempts.length > 0 ? (traffic.answered ?? []) : []));
  const names = metrics.tools.map(({ tool }) => tool);
  const tools = metrics.tools.slice(0, MAX_TOOLS).map(({ tool, server, calls: value, errors }): Bar => {
    const isAlone = names.indexOf(tool) === names.lastIndexOf(tool);
    return { name: isAlone ? tool : `${tool} (${server ?? "-"})`, value, bad: errors };
  });
  return [
    bars("Outcomes, rollouts", outcomeBars(metrics), colors),
    bars("Tool calls (of these errors)", tools, colors),
    spreadOf("Reward, rollouts", rewards, { widths: REWARD_WIDTHS, label: decimal, colors }),
    spreadOf("Run time, rollouts", times, { widths: TIME_WIDTHS, label: timeLabel, colors }),
    spreadOf("Answered model calls, rollouts", calls, { widths: COUNT_WIDTHS, label: decimal, colors }),
  ].filter((chart) => chart !== null);
}

function outcomeBars({ submissions, outcomes }: GatheredRun["metrics"]): Bar[] {
  const bars: Bar[] =
    submissions === null
      ? Object.entries(outcomes).map(([name, value]) => ({
          name,
          value,
          ...(name === "completed" || name === "incomplete" ? {} : { bad: value }),
        }))
      : SUBMISSION_ENDS.map((end) => {
          const value = submissions.by_end[end];
          return { name: submissionWords(end, submissions.tools), value, ...(end === "called" ? {} : { bad: value }) };
        });
  return bars.filter(({ value }) => value > 0);
}

function bars(title: string, shown: Bar[], colors: ChartColors): ReportChart | null {
  if (shown.length === 0) return null;
  return {
    title,
    text: shown.map(({ name, value }) => `${name}: ${value}`).join("; "),
    height: shown.length * BAR_HEIGHT + 8,
    option: (width) => barsOption(shown, { width, colors }),
  };
}

function spreadOf(
  title: string,
  values: number[],
  { widths, label, colors }: { widths: readonly number[]; label: (edge: number) => string; colors: ChartColors },
): ReportChart | null {
  const found = histogram(values, widths);
  if (found === null || values.length < 2) return null;
  return {
    title,
    text: found.counts.map((count, at) => `from ${label(found.edges[at] ?? 0)}: ${count}`).join("; "),
    height: 200,
    option: () => histogramOption(found, { colors, label }),
  };
}
