// SPDX-License-Identifier: Apache-2.0
import { printable } from "../printable.ts";
import type { GatheredRun } from "./gather.ts";
import { keyFigures, reportTables, type ReportTable } from "./report-tables.ts";
import { rolloutsTable } from "./rollouts-table.ts";
import { partialSentence } from "./words.ts";

/** Rollouts that ended badly, and no more: the page has the others. */
const MAX_ROLLOUTS = 50;

/** The report as GitHub's Markdown. Texts of others are escaped: they are neither markup nor HTML. Pure. */
export function reportMarkdown({ metrics, rows }: Pick<GatheredRun, "metrics" | "rows">): string {
  const partial = partialSentence(metrics);
  const models = metrics.models.length === 0 ? "" : `, model ${plain(metrics.models.join(", "))}`;
  const parts = [
    `# Run ${plain(metrics.run_id)}`,
    `${plain(metrics.tasks_path)}, begun ${metrics.created_at}${models}`,
    ...(partial === null ? [] : [`**${partial}**`]),
    keyFigures(metrics)
      .map(({ name, value, note }) => `- ${plain(name)}: **${value}** (${note})`)
      .join("\n"),
    ...reportTables(metrics).map(tableText),
    ...badRollouts(rows),
  ];
  return `${parts.join("\n\n")}\n`;
}

function tableText({ title, note, head, rows }: ReportTable): string {
  const cells = rows.map((row) => row.map((cell) => plain(typeof cell === "string" ? cell : `${cell.text}: ${cell.detail}`)));
  return `## ${title}\n\n${plain(note)}\n\n${gridText(
    head.map(({ text }) => text),
    head.map(({ numeric }) => numeric === true),
    cells,
  )}`;
}

function badRollouts(rows: GatheredRun["rows"]): string[] {
  const { head, lines } = rolloutsTable(rows);
  const bad = lines.filter(({ cells }) => cells[3]?.text !== "");
  if (bad.length === 0) return [];
  const shown = bad.slice(0, MAX_ROLLOUTS);
  const note = bad.length > shown.length ? `The first ${shown.length} of ${bad.length}.` : `All ${bad.length}.`;
  const numeric = shown[0]?.cells.map((cell) => cell.numeric) ?? [];
  const cells = shown.map((line) => line.cells.map(({ text }) => plain(text)));
  return [`## Rollouts that did not end as they should\n\n${note}\n\n${gridText(head, numeric, cells)}`];
}

function gridText(head: readonly string[], numeric: readonly boolean[], rows: readonly string[][]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
  return [line(head), line(head.map((_, at) => (numeric[at] === true ? "--:" : "---"))), ...rows.map(line)].join("\n");
}

/** Text that Markdown shows as it is, on one line. */
function plain(text: string): string {
  return printable(text)
    .replace(/\s+/g, " ")
    .replace(/[\\`*_{}[\]<>#|~&!]/g, (mark) => (mark === "<" ? "&lt;" : mark === "&" ? "&amp;" : `\\${mark}`))
    .replace(/(https?):\/\//gi, "$1:\u200b//"); // GitHub makes links of addresses by itself
}
