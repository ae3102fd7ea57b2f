// SPDX-License-Identifier: Apache-2.0
import type { Automaton } from "./automaton.ts";
import { beginsEscape, canonicalise, type Canonical, EscapeReader, MARKER_HEAD, readCutMarker } from "./canonical.ts";

/**
 * What may be left of an escape or a character that the beginning of the window cut: `0e9`, `{1f600}`, `n`, bytes; or
 * of a surrogate pair, whose second half then stands alone: `d83d\\ude00`.
 */
const CUT_ESCAPE =
  /^(?:[nrtbf]|[ux]?\{?[0-9a-f]{1,6}\}?|\}|[\x80-\xbf]{1,3}|(?:\xef\xbf\xbd){1,3}|u?[0-9a-f]{0,4}\\{0,8}ud[c-f][0-9a-f]{2})$/i;
const MAX_CUT_ESCAPE = 18;
/** After such a rest at least this much of a form must follow, or any hex digit would be taken for one. */
const MIN_AFTER_CUT_ESCAPE = 4;

/**
 * A window that begins in the middle of a form: how many of its first bytes belong to that form, or 0. The echoed rest
 * of a form counts from its first byte; a piece that does not reach the form's end counts where the next cut follows
 * it, or when it is as long as a prefix that is replaced anywhere.
 */
export function endOfBegunForm(automaton: Automaton, window: Buffer, endsAtCut: boolean): number {
  const marker = findCutMarker(window);
  const upToMarker = marker === -1 ? 0 : longestBegun(automaton, window.subarray(0, marker), true);
  return Math.max(upToMarker, longestBegun(automaton, window, endsAtCut));
}

function findCutMarker(window: Buffer): number {
  let at = window.indexOf(MARKER_HEAD);
  while (at !== -1 && readCutMarker(window, at, window.length) <= 0) at = window.indexOf(MARKER_HEAD, at + 1);
  return at;
}

function longestBegun(automaton: Automaton, window: Buffer, endsAtCut: boolean): number {
  let longest = 0;
  for (let skipped = 0; skipped <= Math.min(MAX_CUT_ESCAPE, window.length); skipped++) {
    if (skipped > 0 && !CUT_ESCAPE.test(window.toString("latin1", 0, skipped))) continue;
    const text = canonicalise(window.subarray(skipped), { maxBytes: automaton.maxDepth, endsAtCut });
    const end = longestPiece(automaton, text, window.subarray(skipped), endsAtCut, skipped > 0 ? MIN_AFTER_CUT_ESCAPE : 1);
    if (end > 0) longest = Math.max(longest, skipped + end);
  }
  return longest;
}

function longestPiece({ patterns }: Automaton, text: Canonical, window: Uint8Array, endsAtCut: boolean, atLeast: number): number {
  if (text.bytes.length === 0) return 0;
  const borders = bordersOf(text.bytes);
  let longest = 0;
  for (const { bytes, acceptFrom, endFrom } of patterns) {
    // Knuth-Morris-Pratt with the roles exchanged: which beginnings of the window occur in the form, and at its end.
    let matched = 0;
    let most = 0;
    for (const byte of bytes) {
      if (matched === text.bytes.length) matched = borders[matched - 1]!;
      while (matched > 0 && text.bytes[matched] !== byte) matched = borders[matched - 1]!;
      if (text.bytes[matched] === byte) matched++;
      most = Math.max(most, matched);
    }
    if (matched >= endFrom && matched >= atLeast) longest = Math.max(longest, text.ends[matched - 1]!);
    if (most < Math.max(atLeast, 1)) continue;
    const end = text.ends[most - 1]!;
    if (most >= acceptFrom) longest = Math.max(longest, end);
    const reachesCut = isLeftByCut(window, end) || (text.certain < text.bytes.length && most >= text.certain && text.certain >= atLeast);
    if (endsAtCut && reachesCut) longest = window.length;
  }
  return longest;
}

/** Whether everything from `from` on is what the cut at the window's end left of an escape or a character. */
function isLeftByCut(window: Uint8Array, from: number): boolean {
  const escapes = new EscapeReader(true);
  let at = from;
  while (at < window.length) {
    if (isReplacementCharacter(window, at)) {
      at += 3;
      continue;
    }
    if (!beginsEscape(window[at]!)) return false;
    const next = escapes.read(window, at, window.length, true);
    if (escapes.count > 0) return false;
    at = next;
  }
  return true;
}

/** U+FFFD in UTF-8: what decoders make of a character that was cut. */
function isReplacementCharacter(buf: Uint8Array, at: number): boolean {
  return buf[at] === 0xef && buf[at + 1] === 0xbf && buf[at + 2] === 0xbd;
}

/** For each prefix of `bytes`, the length of its longest proper prefix that is also its suffix. */
function bordersOf(bytes: Uint8Array): Int32Array {
  const borders = new Int32Array(bytes.length);
  for (let index = 1, length = 0; index < bytes.length; index++) {
    while (length > 0 && bytes[length] !== bytes[index]) length = borders[length - 1]!;
    if (bytes[length] === bytes[index]) length++;
    borders[index] = length;
  }
  return borders;
}
