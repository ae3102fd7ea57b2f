// SPDX-License-Identifier: Apache-2.0
import type { Automaton } from "./automaton.ts";
import type { Interval } from "./matcher.ts";
import { REDACTED, type SecretSet } from "./secret-set.ts";
import { endOfBegunForm } from "./window-start.ts";

export type TextOptions = {
  /** The text begins somewhere in a longer one: what is left of a value at its beginning is hidden. */
  startsMidStream?: boolean;
  /** The text was cut off at its end: a value that had only begun there is hidden, from its first character on. */
  endsAtCut?: boolean;
};

/**
 * Replaces every form of every secret by `[redacted]`. All are located in the text as given; where they overlap, all
 * of it is replaced. Cut-off copies are replaced where a cut is proven, and anywhere when they are at least 12
 * characters or half the form. Text without secrets is returned as it is. Linear in the text. Never throws.
 */
export function redactText(set: SecretSet, text: string, options: TextOptions = {}): string {
  return redactWith(set, set.text, text, options);
}

/** The same with one of the set's automata. */
export function redactWith(set: SecretSet, automaton: Automaton, text: string, options: TextOptions): string {
  if (automaton.maxDepth === 0 || text === "") return text;
  const utf8 = Buffer.from(text);
  const matcher = set.matcher(automaton, options.endsAtCut ?? false);
  if (options.startsMidStream) {
    const end = endOfBegunForm(automaton, utf8, options.endsAtCut ?? false);
    if (end > 0) matcher.intervals.push({ start: 0, end, shown: false });
  }
  matcher.advance(utf8, 0, true);
  if (matcher.intervals.length === 0) return text;
  set.replaced(matcher.intervals.length);
  const intervals = utf8.length === text.length ? matcher.intervals : inCodeUnits(text, matcher.intervals);
  let redacted = "";
  let from = 0;
  for (const { start, end } of intervals) {
    redacted += text.slice(from, start) + REDACTED;
    from = end;
  }
  return redacted + text.slice(from);
}

/** Byte offsets to string indices. Counted, not decoded: a lone surrogate has no bytes to be decoded from. */
function inCodeUnits(text: string, intervals: readonly Interval[]): Interval[] {
  let bytes = 0;
  let units = 0;
  const unitAt = (offset: number): number => {
    while (bytes < offset && units < text.length) {
      const point = text.codePointAt(units)!;
      bytes += point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
      units += point < 0x10000 ? 1 : 2;
    }
    return units;
  };
  return intervals.map(({ start, end, shown }) => ({ start: unitAt(start), end: unitAt(end), shown }));
}
