// SPDX-License-Identifier: Apache-2.0
import { durationText } from "../contract/figures.ts";
import { amount } from "../rollout/summary-table.ts";
import { totalsText, unknownWords } from "../rollout/usage-totals.ts";
import type { Metrics, Spread } from "./metrics.ts";
import { SUBMISSION_ENDS } from "./submissions.ts";
import { countsText, decimal, estimateText, share, submissionWords } from "./words.ts";

/** One table of a report, for every form that it takes. Texts of others are in it as they are: whoever writes it out escapes. */
export interface ReportTable {
  title: string;
  /** What the numbers are over. */
  note: string;
  head: { text: string; numeric?: true }[];
  rows: Cell[][];
}

export type Cell = string | { text: string; detail: string };

/** The figures that come first: name, value, and what it is over. Pure. */
export function keyFigures(metrics: Metrics): { name: string; value: string; note: string }[] {
  const { expected, submissions, rewards, model_calls, usage, run_ms, outcomes } = metrics;
  const gradable = outcomes.completed + outcomes.incomplete;
  return [
    submissions === null
      ? { name: "Gradable", value: amount(gradable), note: `completed or incomplete, of ${amount(expected)} expected` }
      : {
          name: `Called ${submissions.tools.join(" and ")}`,
          value: amount(submissions.by_end.called),
          note: `of ${amount(expected)} expected; ${amount(submissions.called_more_than_once)} more than once`,
        },
    ...(rewards?.mean_of_scored == null
      ? []
      : [
          {
            name: "Mean reward",
            value: decimal(rewards.mean_of_scored.value),
            note: `${intervalText(rewards.mean_of_scored.interval)}over ${amount(rewards.tasks)} tasks (${amount(rewards.scored)} scored rollouts)`,
          },
        ]),
    { name: "Failed", value: amount(outcomes.failed), note: `of ${amount(expected)} expected` },
    {
      name: "Model calls",
      value: model_calls.answered.n === 0 ? "-" : amount(model_calls.answered.total),
      note: `answered, in ${amount(model_calls.answered.n)} rollouts; mean ${decimal(rounded(model_calls.answered.mean))}`,
    },
    { name: "Run time, median", value: durationText(run_ms.p50), note: `p95 ${durationText(run_ms.p95)}; ${amount(run_ms.n)} rollouts` },
    {
      name: "Tokens",
      value: usage.sessions === 0 ? "-" : amount(usage.total_tokens),
      note: `${totalsText(usage, amount)}; failed attempts too`,
    },
  ];
}

function intervalText(interval: readonly [number, number] | null): string {
  return interval === null ? "" : `95 %: ${decimal(interval[0])} to ${decimal(interval[1])}; `;
}

/** The tables of a report but the one of the rollouts, in their order. Pure. */
export function reportTables(metrics: Metrics): ReportTable[] {
  return [outcomesTable(metrics), ...causesTable(metrics), ...rewardsTable(metrics), modelTable(metrics), ...toolsTable(metrics)];
}

function outcomesTable({ expected, expected_from, outcomes, submissions, timeouts }: Metrics): ReportTable {
  const statuses = Object.entries(outcomes).map(([status, count]): Cell[] => [`status ${status}`, share(count, expected)]);
  const called = submissions === null ? null : share(submissions.called_more_than_once, submissions.by_end.called);
  return {
    title: "Outcomes",
    note: `Over the ${amount(expected)} expected rollouts (${expected_from}).`,
    head: [{ text: "Outcome" }, { text: "Rollouts", numeric: true }],
    rows: [
      ...(submissions === null
        ? []
        : [
            ...SUBMISSION_ENDS.filter((end) => end === "called" || submissions.by_end[end] > 0).map((end): Cell[] => [
              submissionWords(end, submissions.tools),
              share(submissions.by_end[end], expected),
            ]),
            [`${submissions.tools.join(" and ")} called more than once`, called ?? "-"],
            [
              `${submissions.tools.join(" and ")} called before a limit ended the session`,
              share(submissions.called_before_limit, submissions.by_end.called),
            ],
          ]),
      ["stopped by the wall clock", share(timeouts.wall_clock, expected)],
      ["stopped for idleness", share(timeouts.idle, expected)],
      ...statuses,
    ],
  };
}

function causesTable({ causes, expected }: Metrics): ReportTable[] {
  if (causes.length === 0) return [];
  return [
    {
      title: "Causes",
      note: `Why rollouts did not end as they should; of ${amount(expected)} expected.`,
      head: [{ text: "Cause" }, { text: "Status" }, { text: "Class" }, { text: "Rollouts", numeric: true }, { text: "Example" }],
      rows: causes.map(({ cause, status, cause_class, count, example }) => [
        cause,
        status,
        cause_class ?? "-",
        amount(count),
        example.reason === null ? example.activation_id : { text: example.activation_id, detail: example.reason },
      ]),
    },
  ];
}

function rewardsTable({ rewards, expected }: Metrics): ReportTable[] {
  if (rewards === null) return [];
  return [
    {
      title: "Rewards",
      note:
        `Scored: ${share(rewards.scored, expected)} expected rollouts, of ${amount(rewards.tasks)} tasks; ` +
        `${amount(rewards.unscored_gradable)} gradable ones have no reward (verifying failed for ${amount(rewards.verification_failed)}). ` +
        `A repeat passes with a reward of at least ${decimal(rewards.pass_threshold)}. Intervals: percentile bootstrap over tasks.`,
      head: [{ text: "Measure" }, { text: "Value", numeric: true }, { text: "Over" }],
      rows: [
        ["mean", estimateText(rewards.mean_of_scored), `${amount(rewards.tasks)} tasks with a scored rollout`],
        ["median", estimateText(rewards.median_of_scored), `${amount(rewards.tasks)} tasks with a scored rollout`],
        ["mean, unscored as 0", decimal(rewards.mean_of_expected), `all ${amount(expected)} expected rollouts`],
        ...rewards.pass.flatMap(({ k, pass_at_k, pass_hat_k }): Cell[][] => [
          [`pass@${k}`, estimateText(pass_at_k), `${amount(pass_at_k.n)} tasks with at least ${k} scored`],
          [`pass^${k}`, estimateText(pass_hat_k), `${amount(pass_hat_k.n)} tasks with at least ${k} scored`],
        ]),
      ],
    },
  ];
}

function modelTable({ model_calls, usage, tokens, run_ms, attempts, started }: Metrics): ReportTable {
  return {
    title: "Model calls, tokens and time",
    note:
      `Of the ${amount(started)} rollouts that started (${amount(attempts.total)} attempts). Calls and tokens are those of all attempts, time that of the last. ` +
      `Answers: ${answersText(model_calls.by_status)}; ` +
      `context length exceeded: ${amount(model_calls.context_length_errors)}. ` +
      `Not known: the calls of ${amount(model_calls.unknown_rollouts)} rollouts, the errors of ${amount(model_calls.errors_unknown_rollouts)}` +
      `${unknownWords(usage, amount)
        .map((words) => `; ${words}`)
        .join("")}. ` +
      `Failed attempts: ${countsText(attempts.failed_by_cause) || "none"}.`,
    head: [
      { text: "By rollout" },
      ...["Rollouts", "Total", "Mean", "Median", "p95", "Most"].map((text) => ({ text, numeric: true as const })),
    ],
    rows: [
      spreadRow("answered model calls", model_calls.answered, count),
      spreadRow("tokens in", tokens.input, count),
      spreadRow("of these cached", tokens.cached_input, count),
      spreadRow("of these written to the cache", tokens.cache_write_input, count),
      spreadRow("tokens out", tokens.output, count),
      spreadRow("of these reasoning", tokens.reasoning_output, count),
      spreadRow("run time", run_ms, durationText),
    ],
  };
}

function spreadRow(name: string, spread: Spread, text: (value: number | null) => string): Cell[] {
  const { n, total, mean, p50, p95, max } = spread;
  return [name, amount(n), n === 0 ? "-" : text(total), ...[mean, p50, p95, max].map(text)];
}

/** "200: 6,001; 401: 6". */
function answersText(byStatus: Readonly<Record<string, number>>): string {
  const told = Object.entries(byStatus).map(([status, calls]) => `${status}: ${amount(calls)}`);
  return told.length === 0 ? "none known" : told.join(", ");
}

function count(value: number | null): string {
  return decimal(rounded(value));
}

function rounded(value: number | null): number | null {
  if (value === null) return null;
  return value >= 100 ? Math.round(value) : Math.round(value * 10) / 10;
}

function toolsTable({ tools, started }: Metrics): ReportTable[] {
  if (tools.length === 0) return [];
  return [
    {
      title: "Tools",
      note: `Calls in all attempts of the ${amount(started)} rollouts that started. Errors: failed or timed out. Times: of the calls whose duration is known.`,
      head: [
        { text: "Tool" },
        { text: "Server" },
        ...["Rollouts", "Calls", "Errors", "Time", "Median", "p95"].map((text) => ({ text, numeric: true as const })),
      ],
      rows: tools.map(({ tool, server, rollouts, calls, errors, total_ms, timed, p50_ms, p95_ms }) => [
        tool,
        server ?? "-",
        share(rollouts, started),
        amount(calls),
        calls === 0 ? "-" : share(errors, calls),
        timed === 0 ? "-" : durationText(total_ms),
        durationText(p50_ms),
        durationText(p95_ms),
      ]),
    },
  ];
}
