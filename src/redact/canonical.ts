// SPDX-License-Identifier: Apache-2.0
// One reading for all escaped copies of a text. Listing the copies of a value (JSON-escaped 0 to 3 times, \u00XX in
// two cases, Rust debug, percent-encoded once or twice, mixed) explodes; so both the values and the text are read in a
// canonical form in which all these copies are the same bytes: runs of backslashes are dropped, what they escape is
// decoded, percent escapes are decoded through all their levels. It loses information on purpose; a match in it is
// mapped back to the place in the original where it was read.

const BACKSLASH = 0x5c;
const PERCENT = 0x25;
/** Longest run of backslashes looked at as one unit; a longer run is several units. */
const MAX_RUN = 64;
/** How often a percent sign may be percent-encoded again: `%2525...41`. */
const MAX_PERCENT_LEVELS = 4;

export const MARKER_HEAD = Buffer.from("... (truncated ");
const MARKER_TAIL = Buffer.from(" bytes)");

/** What a backslash makes of the next byte: JSON's and Rust's short escapes, and quotes and slash, which stay themselves. */
const SHORT_ESCAPES = new Map<number, number>(
  Object.entries({ n: 10, t: 9, r: 13, b: 8, f: 12, "0": 0, '"': 0x22, "'": 0x27, "/": 0x2f }).map(([letter, byte]) => [
    letter.charCodeAt(0),
    byte,
  ]),
);

function hexDigit(byte: number | undefined): number {
  if (byte === undefined) return -1;
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const lower = byte | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1;
}

/**
 * The end of Codex's cut marker `... (truncated N bytes)` when it stands at `from`; 0 when it does not; -1 when the
 * bytes end before that is known.
 */
export function readCutMarker(buf: Uint8Array, from: number, end: number): number {
  let at = from;
  for (const byte of MARKER_HEAD) {
    if (at === end) return -1;
    if (buf[at++] !== byte) return 0;
  }
  const digits = at;
  while (at < end && buf[at]! >= 0x30 && buf[at]! <= 0x39 && at - digits < 20) at++;
  if (at === end) return -1;
  if (at === digits) return 0;
  for (const byte of MARKER_TAIL) {
    if (at === end) return -1;
    if (buf[at++] !== byte) return 0;
  }
  return at;
}

export function beginsEscape(byte: number): boolean {
  return byte === BACKSLASH || byte === PERCENT;
}

/** Reads what stands at a backslash or a percent sign. The results of the last `read` are its public fields. */
export class EscapeReader {
  /** The canonical bytes; only the first `count` are meant. */
  readonly bytes = new Uint8Array(4);
  count = 0;
  /** Where the escape begins in the input; a run of backslashes before an ordinary character is not part of it. */
  start = 0;
  /**
   * Where a cut stands right behind a `%` that was read from `%25`, or behind it and a hex digit: then it may as well be
   * the beginning of a byte that was percent-encoded twice. 0 otherwise.
   */
  maybeCutAt = 0;

  readonly #endsAtCut: boolean;
  #end = 0;
  #final = false;
  #percentByte = 0;

  /** `endsAtCut`: an escape that the end of the input cuts stands for nothing, instead of for its own characters. */
  constructor(endsAtCut: boolean) {
    this.#endsAtCut = endsAtCut;
  }

  /**
   * Reads one unit at `from`, where a backslash or percent sign must stand. Returns the index after it, or -1 when
   * more input is needed to know (never when `final`).
   */
  read(buf: Uint8Array, from: number, end: number, final: boolean): number {
    this.count = 0;
    this.start = from;
    this.maybeCutAt = 0;
    this.#end = end;
    this.#final = final;
    let at = from;
    for (;;) {
      while (at < end && at - from < MAX_RUN && buf[at] === BACKSLASH) at++;
      if (at === end) return final ? end : -1;
      if (at - from >= MAX_RUN) return at;
      const next = this.#readUnit(buf, at);
      const isBackslash = next !== -1 && this.count === 1 && this.bytes[0] === BACKSLASH;
      if (!isBackslash) return next;
      // One more backslash of the run: `%5cn`, `\u005cu0041`.
      this.count = 0;
      this.start = from;
      at = next;
    }
  }

  /** Reads what a backslash escapes, or a percent escape. */
  #readUnit(buf: Uint8Array, at: number): number {
    if (buf[at] === PERCENT) return this.#readPercent(buf, at);
    const short = SHORT_ESCAPES.get(buf[at]!);
    if (short !== undefined) return this.#emit(short, at + 1);
    if (buf[at] === 0x75) return this.#readUnicode(buf, at);
    if (buf[at] === 0x78) return this.#readHexByte(buf, at);
    return at;
  }

  #emit(byte: number, next: number): number {
    this.bytes[0] = byte;
    this.count = 1;
    return next;
  }

  /** An escape broke off at `at`: the end of the input, a cut marker (then it stands for nothing), or not an escape: `otherwise`. */
  #brokenOff(buf: Uint8Array, at: number, otherwise: () => number): number {
    if (at === this.#end) {
      if (!this.#final) return -1;
      return this.#endsAtCut ? at : otherwise();
    }
    const marker = readCutMarker(buf, at, this.#end);
    if (marker === -1 && !this.#final) return -1;
    return marker > 0 ? at : otherwise();
  }

  /** End of the percent escape at `at`, its byte in #percentByte; or -1 - s when it is none because of what stands at s. */
  #percent(buf: Uint8Array, at: number): number {
    let digits = at + 1;
    for (let level = 0; level < MAX_PERCENT_LEVELS; level++) {
      const nested = buf[digits] === 0x32 && buf[digits + 1] === 0x35 && digits + 3 < this.#end;
      if (!nested || hexDigit(buf[digits + 2]) < 0 || hexDigit(buf[digits + 3]) < 0) break;
      digits += 2;
    }
    const missing = [digits, digits + 1].find((index) => index >= this.#end || hexDigit(buf[index]) < 0);
    if (missing !== undefined) return -missing - 1;
    this.#percentByte = (hexDigit(buf[digits]) << 4) | hexDigit(buf[digits + 1]);
    return digits + 2;
  }

  #readPercent(buf: Uint8Array, at: number): number {
    this.start = at;
    const next = this.#percent(buf, at);
    if (next < 0) return this.#brokenOff(buf, -next - 1, () => this.#emit(PERCENT, at + 1));
    if (this.#percentByte === PERCENT) {
      const cut = this.#brokenOff(buf, hexDigit(buf[next]) < 0 ? next : next + 1, () => 0);
      if (cut === -1) return -1;
      this.maybeCutAt = cut;
    }
    return this.#emit(this.#percentByte, next);
  }

  #readHexByte(buf: Uint8Array, at: number): number {
    for (const index of [at + 1, at + 2]) {
      if (index >= this.#end || hexDigit(buf[index]) < 0) return this.#brokenOff(buf, index, () => at);
    }
    return this.#emit((hexDigit(buf[at + 1]) << 4) | hexDigit(buf[at + 2]), at + 3);
  }

  #readUnicode(buf: Uint8Array, at: number): number {
    const braces = buf[at + 1] === 0x7b && at + 1 < this.#end;
    const digits = braces ? at + 2 : at + 1;
    let next = digits;
    let point = 0;
    while (next < this.#end && next - digits < (braces ? 6 : 4) && hexDigit(buf[next]) >= 0) {
      point = point * 16 + hexDigit(buf[next++]);
    }
    const complete = braces ? next < this.#end && next > digits && buf[next] === 0x7d : next - digits === 4;
    if (!complete) return this.#brokenOff(buf, next, () => at);
    if (braces) next++;
    if (point >= 0xd800 && point < 0xdc00) return this.#readLowSurrogate(buf, next, point);
    return this.#emitPoint(point, next);
  }

  #readLowSurrogate(buf: Uint8Array, from: number, high: number): number {
    const alone = (): number => this.#emitPoint(high, from);
    let at = from;
    while (at < this.#end && at - from < MAX_RUN && buf[at] === BACKSLASH) at++;
    if (at === this.#end || (at > from && buf[at] !== 0x75) || at === from) return this.#brokenOff(buf, at, alone);
    let low = 0;
    for (let index = at + 1; index < at + 5; index++) {
      if (index >= this.#end || hexDigit(buf[index]) < 0) return this.#brokenOff(buf, index, alone);
      low = low * 16 + hexDigit(buf[index]);
    }
    if (low < 0xdc00 || low > 0xdfff) return alone();
    return this.#emitPoint(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00), at + 5);
  }

  #emitPoint(point: number, next: number): number {
    const text = point > 0x10ffff ? "\ufffd" : String.fromCodePoint(point);
    const encoded = Buffer.from(text);
    this.bytes.set(encoded);
    this.count = encoded.length;
    return next;
  }
}

export interface Canonical {
  bytes: Uint8Array;
  /** For each of the bytes the index in the UTF-8 form where it ends. */
  ends: Uint32Array;
  /** How many bytes stand before what the cut at the end may have left of one, see {@link EscapeReader.maybeCutAt}; else all. */
  certain: number;
}

/** The canonical bytes of a whole text. */
export function canonicalise(utf8: Uint8Array, options: { maxBytes?: number; endsAtCut?: boolean } = {}): Canonical {
  const reader = new EscapeReader(options.endsAtCut ?? false);
  const limit = Math.min(options.maxBytes ?? utf8.length, utf8.length);
  const bytes = new Uint8Array(limit + 4);
  const ends = new Uint32Array(limit + 4);
  let count = 0;
  let certain: number | null = null;
  let at = 0;
  while (at < utf8.length && count < limit) {
    const byte = utf8[at]!;
    if (!beginsEscape(byte)) {
      bytes[count] = byte;
      ends[count++] = ++at;
      continue;
    }
    at = reader.read(utf8, at, utf8.length, true);
    if (reader.maybeCutAt === utf8.length) certain ??= count;
    for (let index = 0; index < reader.count; index++) {
      bytes[count] = reader.bytes[index]!;
      ends[count++] = at;
    }
  }
  return { bytes: bytes.subarray(0, count), ends: ends.subarray(0, count), certain: certain ?? count };
}
