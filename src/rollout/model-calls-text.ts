// SPDX-License-Identifier: Apache-2.0
import { threadLabel } from "../contract/thread-label.ts";
import type { Evidence, Tokens } from "../contract/result.ts";
import { amount } from "./summary-table.ts";

/** Threads that are shown, and calls at either end of them. */
const MOST_THREADS = 20;
const AT_AN_END = 15;
const MAX_LABEL = 40;
const MAX_RESPONSE = 60;

const KINDS = ["input", "cached", "cache write", "output", "reasoning"];

/** A line, and the instant that stands before it; null = none does. */
export interface TimedLine {
  at: string | null;
  text: string;
}

/**
 * A session's model calls as two tables, by thread and by call: the first and the last calls, and how many are between. Empty where no
 * thread is known. Pure.
 */
export function modelCallLines({ threads, model_calls: calls }: Evidence): TimedLine[] {
  if (threads.length === 0) return [];
  const byThread = threads
    .slice(0, MOST_THREADS)
    .map(({ thread_id, model_calls, open_model_calls, tokens }) => [
      oneLine(threadLabel(threads, thread_id), MAX_LABEL),
      amount(model_calls),
      amount(open_model_calls),
      ...kindsOf(tokens),
    ]);
  const shown = calls.length <= 2 * AT_AN_END ? calls : [...calls.slice(0, AT_AN_END), ...calls.slice(-AT_AN_END)];
  const [head, ...lines] = aligned([
    ["model calls of", "for", ...KINDS, "response"],
    ...shown.map(({ thread_id, kind, tokens, response_id }) => [
      oneLine(threadLabel(threads, thread_id), MAX_LABEL),
      kind,
      ...kindsOf(tokens),
      response_id === null ? "-" : oneLine(response_id, MAX_RESPONSE),
    ]),
  ]);
  const timed = lines.map((text, index): TimedLine => ({ at: shown[index]!.at, text }));
  return [
    ...aligned([["thread", "calls", "open", ...KINDS], ...byThread]).map(untimed),
    ...left(threads.length - byThread.length, "threads"),
    ...(calls.length === 0 ? [] : [untimed(head!)]),
    ...timed.slice(0, AT_AN_END),
    ...left(calls.length - shown.length, "model calls between"),
    ...timed.slice(AT_AN_END),
  ];
}

function left(count: number, what: string): TimedLine[] {
  return count === 0 ? [] : [untimed(`... ${amount(count)} ${what}: --json has them all`)];
}

function untimed(text: string): TimedLine {
  return { at: null, text };
}

/** "?": this Codex does not tell it. */
function kindsOf(tokens: Tokens): string[] {
  const { input_tokens, cached_input_tokens, cache_write_input_tokens: written, output_tokens, reasoning_output_tokens } = tokens;
  return [input_tokens, cached_input_tokens, written, output_tokens, reasoning_output_tokens].map((count) =>
    count === null ? "?" : amount(count),
  );
}

/** Rows under their heads, numbers to the right. */
function aligned(rows: readonly string[][]): string[] {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  const isNumber = rows[0]!.map((head) => KINDS.includes(head) || head === "calls" || head === "open");
  return rows.map((row) =>
    row
      .map((cell, column) => (isNumber[column]! ? cell.padStart(widths[column]!) : cell.padEnd(widths[column]!)))
      .join("  ")
      .trimEnd(),
  );
}

function oneLine(text: string, most: number): string {
  const line = text.replace(/[\t\n]/g, " ");
  return line.length <= most ? line : `${line.slice(0, most - 1)}…`;
}
