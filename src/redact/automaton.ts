// SPDX-License-Identifier: Apache-2.0
import { piecesOf, type Pattern } from "./forms.ts";

const BYTES = 256;

/**
 * Aho-Corasick over all forms of all secrets: after each byte, `depth` of the state is the length of the longest form
 * prefix that ends there, whatever it overlaps. So each byte costs a bounded amount on average, however many secrets
 * there are and whatever the text is.
 */
export class Automaton {
  readonly patterns: readonly Pattern[];
  readonly maxDepth: number;
  readonly depth: Int32Array;
  /** Length of the longest replaceable prefix (whole forms included) that ends at a state; 0 for none. */
  readonly cover: Int32Array;
  /** Length of the longest form prefix that ends at a state; `depth` counts what pieces begin with, too. */
  readonly begun: Int32Array;
  /** Length of the longest piece from the middle or the end of a form that is replaced anywhere and ends at a state; 0 for none. */
  readonly piece: Int32Array;
  /** Length of the longest whole form that ends at a state; 0 for none. */
  readonly whole: Int32Array;
  /** 1 where the state is a prefix long enough to be replaced at the end of a line. */
  readonly endsLine: Uint8Array;

  readonly #byte: Uint8Array;
  readonly #firstChild: Int32Array;
  readonly #sibling: Int32Array;
  readonly #fail: Int32Array;
  /** Complete transitions of the root and its children, which are the first states and by far the most visited. */
  readonly #dense: Int32Array;
  readonly #denseStates: number;
  #size = 1;

  /** `cutAnywhere`: pieces of forms are looked for as well, which takes some ten times the memory. */
  constructor(patterns: readonly Pattern[], { cutAnywhere = true } = {}) {
    this.patterns = patterns;
    const pieces = cutAnywhere ? patterns.flatMap(piecesOf) : [];
    const capacity = [...patterns.map(({ bytes }) => bytes), ...pieces].reduce((sum, { length }) => sum + length, 1);
    this.maxDepth = patterns.reduce((most, { bytes }) => Math.max(most, bytes.length), 0);
    this.depth = new Int32Array(capacity);
    this.cover = new Int32Array(capacity);
    this.begun = new Int32Array(capacity);
    this.piece = new Int32Array(capacity);
    this.whole = new Int32Array(capacity);
    this.endsLine = new Uint8Array(capacity);
    this.#byte = new Uint8Array(capacity);
    this.#firstChild = new Int32Array(capacity);
    this.#sibling = new Int32Array(capacity);
    this.#fail = new Int32Array(capacity);
    for (const { bytes } of patterns) this.#childOrNew(0, bytes[0]!);
    for (const bytes of pieces) this.#childOrNew(0, bytes[0]!);
    this.#denseStates = this.#size;
    this.#dense = new Int32Array(this.#denseStates * BYTES);
    for (const pattern of patterns) this.#insert(pattern);
    for (const bytes of pieces) this.#insertPiece(bytes);
    this.#link();
  }

  /** The state after `byte`; 0 is the state in which nothing has begun. */
  step(from: number, byte: number): number {
    let state = from;
    for (;;) {
      if (state < this.#denseStates) return this.#dense[state * BYTES + byte]!;
      const child = this.#child(state, byte);
      if (child !== 0) return child;
      state = this.#fail[state]!;
    }
  }

  #child(state: number, byte: number): number {
    let child = this.#firstChild[state]!;
    while (child !== 0 && this.#byte[child] !== byte) child = this.#sibling[child]!;
    return child;
  }

  #childOrNew(state: number, byte: number): number {
    const existing = this.#child(state, byte);
    if (existing !== 0) return existing;
    const child = this.#size++;
    this.#byte[child] = byte;
    this.#sibling[child] = this.#firstChild[state]!;
    this.#firstChild[state] = child;
    this.depth[child] = this.depth[state]! + 1;
    return child;
  }

  #insert({ bytes, fullAt, acceptFrom, lineFrom, begins }: Pattern): void {
    let state = 0;
    for (const byte of bytes) {
      state = this.#childOrNew(state, byte);
      const depth = this.depth[state]!;
      if (begins) this.begun[state] = depth;
      const insideCharacter = depth < bytes.length && (bytes[depth]! & 0xc0) === 0x80;
      if (depth >= acceptFrom && !insideCharacter) this.cover[state] = depth;
      if (begins && depth >= lineFrom) this.endsLine[state] = 1;
      if (fullAt.includes(depth)) this.cover[state] = this.whole[state] = depth;
    }
  }

  #insertPiece(bytes: Uint8Array): void {
    let state = 0;
    for (const byte of bytes) state = this.#childOrNew(state, byte);
    this.piece[state] = bytes.length;
  }

  /** Breadth first, so that a state's fail state, which is less deep, is complete before it. */
  #link(): void {
    const queue = new Int32Array(this.#size);
    let added = 1;
    for (let done = 0; done < added; done++) {
      const state = queue[done]!;
      const fail = this.#fail[state]!;
      if (this.begun[state] === 0) this.begun[state] = this.begun[fail]!;
      // The longest form prefix decides about the end of a line, whichever state has it.
      if (this.begun[state] !== this.depth[state]) this.endsLine[state] = this.endsLine[fail]!;
      if (this.piece[state] === 0) this.piece[state] = this.piece[fail]!;
      if (this.cover[state] === 0) this.cover[state] = this.cover[fail]!;
      if (this.whole[state] === 0) this.whole[state] = this.whole[fail]!;
      const row = state * BYTES;
      const isDense = state < this.#denseStates;
      if (isDense && state !== 0) this.#dense.copyWithin(row, 0, BYTES);
      for (let child = this.#firstChild[state]!; child !== 0; child = this.#sibling[child]!) {
        const byte = this.#byte[child]!;
        if (state !== 0) this.#fail[child] = this.step(fail, byte);
        if (isDense) this.#dense[row + byte] = child;
        queue[added++] = child;
      }
    }
  }
}
