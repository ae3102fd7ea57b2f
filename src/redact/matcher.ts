// SPDX-License-Identifier: Apache-2.0
import type { Automaton } from "./automaton.ts";
import { EscapeReader, readCutMarker } from "./canonical.ts";

/** A place in the original, in bytes from the beginning of the input. `shown`: its replacement was already written. */
export type Interval = { start: number; end: number; shown: boolean };

/** Cut-off copies directly before a match, before each other: this many are followed back. It bounds what is held. */
const MAX_CHAIN = 4;
/** A match is given up when escape signs that stand for nothing separate two of its bytes by more than this. */
const MAX_DROPPED = 1024;

const LINE_END = 1;
const DOT = 2;
const ESCAPE = 3;
const REPLACEMENT = 4;
/** What has to be looked at besides the automaton; 0 for most bytes. */
const KIND = new Uint8Array(256);
KIND[0x0a] = KIND[0x0d] = LINE_END;
KIND[0x2e] = DOT;
KIND[0x25] = KIND[0x5c] = ESCAPE;
KIND[0xef] = REPLACEMENT;

export type MatcherOptions = {
  /** `replaceable` (default): whole forms and cut-off copies. `whole`: whole forms only. */
  find?: "replaceable" | "whole";
  /** The end of the input is a cut. */
  endsAtCut?: boolean;
};

/**
 * Finds all secrets in a stream of bytes, in one pass. Feed it the input with `advance`, each time from `held` on;
 * what it found is in `intervals`, in order, not overlapping; those that end before `held` are final.
 */
export class Matcher {
  intervals: Interval[] = [];
  readonly #automaton: Automaton;
  readonly #covers: Int32Array;
  readonly #cuts: boolean;
  readonly #endsAtCut: boolean;
  readonly #escapes: EscapeReader;
  /** For the last canonical bytes: where each begins in the input, and the state's depth before it. */
  readonly #starts: Float64Array;
  readonly #depths: Int32Array;
  readonly #mask: number;
  #count = 0;
  #state = 0;
  #at = 0;
  #dropped = 0;

  constructor(automaton: Automaton, options: MatcherOptions = {}) {
    this.#automaton = automaton;
    this.#cuts = options.find !== "whole";
    this.#covers = this.#cuts ? automaton.cover : automaton.whole;
    this.#endsAtCut = options.endsAtCut ?? false;
    this.#escapes = new EscapeReader(this.#endsAtCut);
    const window = 2 ** Math.ceil(Math.log2((MAX_CHAIN + 2) * (automaton.maxDepth + 1)));
    this.#starts = new Float64Array(window);
    this.#depths = new Int32Array(window);
    this.#mask = window - 1;
  }

  /** Back to the beginning, for another input. */
  reset(): void {
    this.intervals = [];
    this.#count = this.#state = this.#at = this.#dropped = 0;
  }

  /** The offset up to which the input was read. */
  get read(): number {
    return this.#at;
  }

  /** Everything before this offset is decided; what follows must be given to `advance` again, with more behind it. */
  get held(): number {
    const depth = this.#automaton.depth[this.#state]!;
    if (depth === 0) return this.#at;
    const piece = this.#startOf(this.#count - depth);
    const begun = this.#automaton.begun[this.#state]!;
    return begun === 0 ? piece : Math.min(piece, this.#startOf(this.#chainBack(this.#count - begun)));
  }

  /** Reads `buf`, whose first byte has the offset `base`, on from where the last call stopped. */
  advance(buf: Uint8Array, base: number, final: boolean): void {
    const end = buf.length;
    let at = this.#at - base;
    while (at < end) {
      const byte = buf[at]!;
      const kind = KIND[byte]!;
      if (kind === ESCAPE) {
        const next = this.#escapes.read(buf, at, end, final);
        if (next === -1) break;
        this.#takeEscape(at, next, base);
        at = next;
        continue;
      }
      if (kind === LINE_END) this.#endLine(base + at);
      else if (kind === DOT) {
        const marker = readCutMarker(buf, at, end);
        if (marker === -1 && !final) break;
        if (marker > 0) this.#cut(base + at);
      } else if (kind === REPLACEMENT) {
        const next = this.#afterCutCharacter(buf, at, final);
        if (next === -1) break;
        if (next > at) {
          at = next;
          continue;
        }
      }
      this.#take(byte, base + at, base + at + 1);
      at++;
    }
    this.#at = base + at;
    if (final && this.#endsAtCut) this.#cut(this.#at);
    else if (final) this.#endLine(this.#at);
  }

  /**
   * U+FFFD directly before a cut is what is left of a character that was cut: no byte of the value, but part of what is
   * replaced. Returns the index after it, `at` when it is an ordinary one, -1 when more input is needed.
   */
  #afterCutCharacter(buf: Uint8Array, at: number, final: boolean): number {
    for (const [index, byte] of [0xef, 0xbf, 0xbd].entries()) {
      if (at + index === buf.length) return final ? at : -1;
      if (buf[at + index] !== byte) return at;
    }
    const next = at + 3;
    if (next === buf.length) return final && this.#endsAtCut ? next : final ? at : -1;
    const marker = readCutMarker(buf, next, buf.length);
    if (marker === -1) return final ? at : -1;
    return marker > 0 ? next : at;
  }

  #takeEscape(at: number, next: number, base: number): void {
    const { count, bytes, start, maybeCutAt } = this.#escapes;
    if (maybeCutAt > 0) this.#cut(base + maybeCutAt);
    if (count === 0) {
      this.#dropped += next - at;
      if (this.#dropped > MAX_DROPPED) this.#state = 0;
      return;
    }
    if (bytes[0] === 0x0a || bytes[0] === 0x0d) this.#endLine(base + start);
    for (let index = 0; index < count; index++) this.#take(bytes[index]!, base + start, base + next);
  }

  #take(byte: number, start: number, end: number): void {
    const { begun, piece } = this.#automaton;
    const before = this.#state;
    const state = this.#automaton.step(before, byte);
    this.#dropped = 0;
    this.#state = state;
    if (state === 0) return;
    const slot = this.#count++ & this.#mask;
    this.#starts[slot] = start;
    this.#depths[slot] = begun[before]!;
    const covered = this.#covers[state]!;
    // Only what has begun as a form is followed back: the rest before it may have been passed on already.
    if (covered > 0 && covered <= begun[state]!) this.#add(this.#count - covered, end);
    else if (covered > 0) this.#addFrom(this.#startOf(this.#count - covered), end);
    if (this.#cuts && piece[state]! > covered) this.#addFrom(this.#startOf(this.#count - piece[state]!), end);
  }

  #startOf(index: number): number {
    return this.#starts[index & this.#mask]!;
  }

  /** From the canonical byte `index` back over the cut-off copies that stand directly before it. */
  #chainBack(index: number): number {
    let first = index;
    if (!this.#cuts) return first;
    for (let link = 0; link < MAX_CHAIN; link++) {
      const depth = this.#depths[first & this.#mask]!;
      if (depth === 0) break;
      first -= depth;
    }
    return first;
  }

  #add(index: number, end: number): void {
    let start = this.#startOf(index);
    const last = this.intervals.at(-1);
    if (last !== undefined && start >= last.start && start < last.end) {
      last.end = Math.max(last.end, end);
      return;
    }
    if (last?.end !== start) start = this.#startOf(this.#chainBack(index));
    this.#addFrom(start, end);
  }

  /** Becomes one with whatever it overlaps. */
  #addFrom(from: number, to: number): void {
    let [start, end] = [from, to];
    let last = this.intervals.at(-1);
    let shown = false;
    while (last !== undefined && last.end > start) {
      start = Math.min(start, last.start);
      end = Math.max(end, last.end);
      shown = last.shown;
      this.intervals.pop();
      last = this.intervals.at(-1);
    }
    this.intervals.push({ start, end, shown });
  }

  /** A cut is proven at `offset`: any prefix that ends there is a cut-off copy. */
  #cut(offset: number): void {
    const depth = this.#automaton.begun[this.#state]!;
    if (this.#cuts && depth > 0) this.#add(this.#count - depth, offset);
  }

  #endLine(offset: number): void {
    if (this.#automaton.endsLine[this.#state] === 1) this.#cut(offset);
  }
}
