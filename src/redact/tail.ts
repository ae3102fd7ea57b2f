// SPDX-License-Identifier: Apache-2.0
import { REDACTED, type SecretSet } from "./secret-set.ts";
import { redactText, type TextOptions } from "./text.ts";

/** Longest line kept whole. Codex 0.171.0 puts some 650 characters before the cause it wants to tell, hence the large head. */
const MAX_LINE = 1300;
const HEAD_SHARE = 0.7;
/** Shorter lines are not shortened, whatever `maxChars` is: the notice would be longer than what it stands for. */
const MIN_LINE = 150;

export type TailOptions = TextOptions & {
  /** Most characters (UTF-16 code units) of the result; 2,000 unless given. */
  maxChars?: number;
};

/**
 * What of a captured stderr is shown: redacted first; then long lines are shortened in their middle, saying how much
 * was removed; then the last `maxChars` characters are kept. No cut goes through a character or a `[redacted]`.
 */
export function redactTail(set: SecretSet, text: string, options: TailOptions = {}): string {
  const { maxChars = 2000, ...textOptions } = options;
  const maxLine = Math.max(MIN_LINE, Math.min(MAX_LINE, maxChars));
  const redacted = redactText(set, text, textOptions);
  const lines = redacted.split("\n").map((line) => shortenLine(line, maxLine));
  const short = lines.join("\n");
  return short.slice(cutAfter(short, short.length - maxChars));
}

function shortenLine(line: string, maxLine: number): string {
  if (line.length <= maxLine) return line;
  const room = maxLine - notice(line.length).length;
  const head = cutBefore(line, Math.floor(room * HEAD_SHARE));
  const tail = cutAfter(line, line.length - (room - Math.floor(room * HEAD_SHARE)));
  return line.slice(0, head) + notice(tail - head) + line.slice(tail);
}

function notice(removed: number): string {
  return ` [... ${removed} characters removed ...] `;
}

/** The nearest place at or before `index` where a cut harms nothing. */
function cutBefore(text: string, index: number): number {
  const whole = wholeAt(text, index);
  return whole === undefined ? Math.max(0, index) : whole.start;
}

/** The nearest place at or after `index` where a cut harms nothing. */
function cutAfter(text: string, index: number): number {
  const whole = wholeAt(text, index);
  return whole === undefined ? Math.max(0, index) : whole.end;
}

/** The surrogate pair or `[redacted]` that a cut at `index` would go through. */
function wholeAt(text: string, index: number): { start: number; end: number } | undefined {
  if (index <= 0 || index >= text.length) return undefined;
  const start = text.lastIndexOf(REDACTED, index - 1);
  if (start !== -1 && start + REDACTED.length > index) return { start, end: start + REDACTED.length };
  const inPair = text.codePointAt(index - 1)! > 0xffff;
  return inPair ? { start: index - 1, end: index + 1 } : undefined;
}
