// SPDX-License-Identifier: Apache-2.0
import type { Difference } from "./compare.ts";
import { KINDS, type Kind } from "./scenario.ts";

export interface Row {
  scenario: string;
  kind: Kind;
  differences: Difference[];
}

export interface VersionReport {
  version: string;
  profiled: boolean;
  models: Record<string, string>;
  seconds: number;
  rows: Row[];
  /** Of the run as a whole. */
  run: Difference[];
}

/** For whoever has to change something: what decides each. */
const WHERE: Record<Difference["aspect"], string> = {
  result: "the session has no result",
  summary: "the run's sum of tokens: src/rollout/summary.ts",
  end: "texts of Codex and what they mean: src/codex/profiles/<version>.ts, src/codex/verdict.ts, src/codex/startup.ts; a new right value: the scenario's `ends`",
  "servers named": "how Codex names servers in stderr: src/codex/profiles/<version>.ts, src/codex/startup.ts",
  tokens: "records of usage in the transcripts: src/codex/usage.ts and the readers of transcripts",
  "model calls": "the same records, one for each call",
  threads: "transcripts of spawned agents: one file a thread",
  "response ids": "token_usage_record of the transcripts; scripts/codex-matrix/compare.ts says which versions tell them",
  "tool calls": "events and transcript records of calls: src/codex/tool-calls.ts, src/codex/transcript-records.ts",
  deliverables: "arguments of finish in events and transcripts: src/artifacts/submission.ts",
  "tools offered":
    "expected: missing, found: too many. Keys of config.toml: src/codex/profiles/<version>.ts, src/codex/config.ts; a harmless new tool: offers.ts",
  gaps: "expected: missing, found: unexpected. src/codex/gaps.ts; what a version never tells: scripts/codex-matrix/compare.ts",
};

export function differs({ rows, run }: VersionReport): boolean {
  return run.length > 0 || rows.some(({ differences }) => differences.length > 0);
}

/** One version: a table of scenario and kind, every difference, where to look. Markdown, which a terminal shows as well. Pure. */
export function markdownOf(report: VersionReport): string {
  const { version, profiled, models, seconds, rows, run } = report;
  const kinds = KINDS.filter((kind) => models[kind] !== undefined);
  const names = [...new Set(rows.map(({ scenario }) => scenario))];
  const bad = rows.filter(({ differences }) => differences.length > 0);
  const lines = [
    `## Codex ${version}${profiled ? "" : " (no profile: read as the newest one)"}`,
    "",
    `${rows.length} sessions in ${Math.round(seconds)} s: ${rows.length - bad.length} as they should be, ${bad.length} not.`,
    "",
    ...table(
      ["scenario", ...kinds.map((kind) => `${kind} (${models[kind]})`)],
      names.map((name) => [name, ...kinds.map((kind) => cell(rows.find((row) => row.scenario === name && row.kind === kind)))]),
    ),
  ];
  const told = [
    ...run.map((one) => ["(run)", "", one] as const),
    ...bad.flatMap((row) => row.differences.map((one) => [row.scenario, row.kind, one] as const)),
  ];
  if (told.length === 0) return lines.join("\n");
  const aspects = [...new Set(told.map(([, , { aspect }]) => aspect))];
  return [
    ...lines,
    "",
    ...told.map(([scenario, kind, { aspect, expected, found }]) => {
      return `- ${scenario}${kind === "" ? "" : ` (${kind})`}, ${aspect}: expected \`${expected}\`, found \`${found}\``;
    }),
    "",
    "Where to look:",
    "",
    ...aspects.map((aspect) => `- ${aspect}: ${WHERE[aspect]}`),
  ].join("\n");
}

function cell(row: Row | undefined): string {
  if (row === undefined) return "";
  return row.differences.length === 0 ? "ok" : row.differences.map(({ aspect }) => aspect).join(", ");
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const escaped = [head, ...rows].map((cells) => cells.map((text) => text.replaceAll("|", "\\|").replaceAll("\n", " ")));
  const widths = head.map((_, column) => Math.max(3, ...escaped.map((cells) => cells[column]!.length)));
  const line = (cells: readonly string[]): string => `| ${cells.map((text, column) => text.padEnd(widths[column]!)).join(" | ")} |`;
  return [line(escaped[0]!), `| ${widths.map((width) => "-".repeat(width)).join(" | ")} |`, ...escaped.slice(1).map(line)];
}
