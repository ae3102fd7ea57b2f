// SPDX-License-Identifier: Apache-2.0
import { canonicalise } from "./canonical.ts";

/** A value that must not be shown. `name` is the header's or variable's name, where there is one. */
export type SecretInput = { value: string; name?: string };

/** One form of a secret, as canonical bytes. Depths count bytes of it. */
export type Pattern = {
  readonly bytes: Uint8Array;
  /** Depths at which the form is complete. */
  readonly fullAt: readonly number[];
  /** From this depth on a prefix is replaced wherever it stands. */
  readonly acceptFrom: number;
  /** From this depth on a prefix is replaced at the end of a line. */
  readonly lineFrom: number;
  /** Shortest end of the form that is replaced where a window begins in its middle. */
  readonly endFrom: number;
  /** First bytes that are no secret, such as "Bearer ". */
  readonly publicBytes: number;
  /** Whether pieces of it are looked for, see {@link piecesOf}. */
  readonly inPieces: boolean;
  /** False: a prefix too short to be replaced anywhere means nothing, not even before a cut: any number ends in two hex digits. */
  readonly begins: boolean;
};

/** A prefix of this many characters, or of half the form, is replaced wherever it stands. */
const PREFIX_CHARS = 12;
/** Values and unproven prefixes below this many characters are too common in ordinary text. */
const MIN_CHARS = 4;
/** Shorter values have no base64 forms: a few base64 characters occur by chance. */
const MIN_BASE64_BYTES = 6;

/** Of longer values, pieces are looked for as written only: there are eight codings, and each piece takes room. */
const MAX_CODED_PIECES = 1_024;
/** Fewer hex digits at the beginning of a window are those of anything. */
const MIN_HEX = 8;

const SCHEME = /^(?:bearer|basic|token|digest|negotiate|apikey|api-key|key|jwt|oauth)[ \t]+(?=\S)/i;
const AUTHORIZATION_SCHEME = /^[!#$%&'*+.^_`|~\w-]+[ \t]+(?=\S)/;

function schemeLength({ value, name }: SecretInput): number {
  const scheme = name !== undefined && /authorization$/i.test(name) ? AUTHORIZATION_SCHEME : SCHEME;
  return scheme.exec(value)?.[0].length ?? 0;
}

/**
 * The secrets inside a secret: the value as sent (Codex trims header values), X of "Bearer X", the user and password
 * that "Basic X" encodes, each cookie of a Cookie header. Values that are empty or white space are left out.
 */
export function secretsWithin(input: SecretInput): SecretInput[] {
  const trimmed = { ...input, value: input.value.trim() };
  const found = [input, trimmed];
  const scheme = schemeLength(trimmed);
  if (scheme > 0) {
    const credentials = trimmed.value.slice(scheme);
    found.push({ value: credentials });
    if (/^basic/i.test(trimmed.value)) {
      const decoded = Buffer.from(credentials, "base64").toString();
      if (/^[^:\ufffd]*:[^\ufffd]{4,}$/.test(decoded)) {
        found.push({ value: decoded }, { value: decoded.slice(decoded.indexOf(":") + 1) });
      }
    }
  }
  if (/^(?:set-)?cookie$/i.test(input.name ?? "")) {
    for (const pair of trimmed.value.split(";")) {
      const value = pair.slice(pair.indexOf("=") + 1).trim();
      if (value.length >= MIN_CHARS) found.push({ value });
    }
  }
  return found.filter(({ value }) => value.trim() !== "");
}

/** How many of the first bytes make up `chars` characters of UTF-8. */
function bytesOfChars(bytes: Uint8Array, chars: number): number {
  let seen = 0;
  for (let index = 0; index < bytes.length; index++) {
    const begins = (bytes[index]! & 0xc0) !== 0x80;
    if (begins && seen++ === chars) return index;
  }
  return bytes.length;
}

function countChars(bytes: Uint8Array): number {
  return bytes.reduce((count, byte) => count + ((byte & 0xc0) === 0x80 ? 0 : 1), 0);
}

/** Without bytes at its beginning that could only be the rest of a character: a form must not begin inside one. */
function fromCharacter(bytes: Uint8Array): Uint8Array {
  return bytes.subarray(bytes.findIndex((byte) => (byte & 0xc0) !== 0x80));
}

/** `publicChars`: first characters that are no secret, such as "Bearer "; they do not count towards a prefix's length. */
function patternOf(bytes: Uint8Array, publicChars = 0, fullAt = [bytes.length], endFrom = 1, more: Partial<Pattern> = {}): Pattern {
  const secretChars = countChars(bytes) - publicChars;
  const accepted = Math.min(PREFIX_CHARS, Math.max(MIN_CHARS, Math.ceil(secretChars / 2)));
  return {
    bytes,
    fullAt,
    acceptFrom: bytesOfChars(bytes, publicChars + accepted),
    lineFrom: bytesOfChars(bytes, publicChars + MIN_CHARS),
    endFrom,
    publicBytes: bytesOfChars(bytes, publicChars),
    inPieces: true,
    begins: true,
    ...more,
  };
}

/**
 * What else of a form is replaced wherever it stands, since either side may have been cut off: any 12 characters in a row, so that any
 * longer piece is covered; of a form of less than 24, its ends from the half on. Ends of a form that is complete at several depths count
 * from each.
 */
export function piecesOf({ bytes, fullAt, publicBytes, inPieces }: Pattern): Uint8Array[] {
  if (!inPieces) return [];
  const starts: number[] = [];
  for (let at = publicBytes; at < bytes.length; at++) if ((bytes[at]! & 0xc0) !== 0x80) starts.push(at);
  if (starts.length < 2 * PREFIX_CHARS) {
    const accepted = Math.max(MIN_CHARS, Math.ceil(starts.length / 2));
    return fullAt.flatMap((end) => {
      const before = starts.filter((start) => start < end);
      return before.slice(1, Math.max(1, before.length - accepted + 1)).map((start) => bytes.subarray(start, end));
    });
  }
  const pieces: Uint8Array[] = [];
  for (let first = 1; first + PREFIX_CHARS <= starts.length; first++)
    pieces.push(bytes.subarray(starts[first], starts[first + PREFIX_CHARS] ?? bytes.length));
  return pieces;
}

/**
 * The base64 of anything that contains the value: what of it does not depend on the bytes before (0, 1 or 2 of them in
 * the first group), and complete when the value ends there or when other bytes follow. So `user:value` is found for
 * every user.
 */
function base64Patterns(value: Buffer): Pattern[] {
  if (value.length < MIN_BASE64_BYTES) return [];
  const patterns: Pattern[] = [];
  const inPieces = value.length <= MAX_CODED_PIECES;
  for (const before of [0, 1, 2]) {
    const encoded = Buffer.concat([Buffer.alloc(before), value]).toString("base64");
    const from = [0, 2, 3][before]!;
    const stable = Math.floor(((before + value.length) * 8) / 6);
    const standard = encoded.slice(from);
    const fullAt = [stable - from, standard.replace(/=+$/, "").length, standard.length];
    const urlSafe = standard.replaceAll("+", "-").replaceAll("/", "_");
    for (const text of new Set([standard, urlSafe])) patterns.push(patternOf(Buffer.from(text), 0, fullAt, MIN_CHARS, { inPieces }));
  }
  return patterns;
}

/** As `xxd -p` and `hex()` write it, in either case. */
function hexPatterns(value: Buffer): Pattern[] {
  if (value.length < MIN_BASE64_BYTES) return [];
  const hex = value.toString("hex");
  return [...new Set([hex, hex.toUpperCase()])].map((text) =>
    patternOf(Buffer.from(text), 0, [text.length], MIN_HEX, { begins: false, inPieces: value.length <= MAX_CODED_PIECES }),
  );
}

/**
 * The forms of one secret that are looked for in text. What escapes add to them is undone by the canonical reading,
 * except where an escape sign directly before the value swallows its first characters: those are forms of their own.
 */
function longPatterns(input: SecretInput): Pattern[] {
  const { value } = input;
  const read = (text: string): Uint8Array => canonicalise(Buffer.from(text)).bytes;
  const swallowed: string[] = [];
  if (/^[nrtbf0ux]/.test(value)) swallowed.push(`\\${value}`);
  if (/^[0-9a-f]{2}/i.test(value)) swallowed.push(`%${value}`);
  // After a percent sign and a digit, one more completes the escape.
  if (/^[0-9a-f]/i.test(value)) swallowed.push(value.slice(1));
  const rests = swallowed.map((text) => fromCharacter(read(text))).filter((bytes) => countChars(bytes) >= MIN_CHARS);
  const forms = [read(value)];
  if (value.includes(" ")) forms.push(read(value.replaceAll(" ", "+")));
  const scheme = schemeLength(input);
  return [
    ...forms.map((bytes) => patternOf(bytes, scheme)),
    ...rests.map((bytes) => patternOf(bytes, scheme, [bytes.length], 1, { inPieces: false })), // pieces of them are pieces of the value
    ...base64Patterns(Buffer.from(value)),
    ...hexPatterns(Buffer.from(value)),
  ];
}

/**
 * The patterns of one secret. Values of 1 to 3 characters, and those of which fewer than 4 are left when their escapes
 * are read (`\\\\n`), are `short`: found whole and as written only, and in structured data only as whole strings.
 */
export function patternsOf(input: SecretInput): { short: boolean; patterns: Pattern[] } {
  const raw = Buffer.from(input.value);
  const { bytes } = canonicalise(raw);
  if (countChars(bytes) >= MIN_CHARS) return { short: false, patterns: longPatterns(input) };
  const asWritten = raw.equals(bytes) && bytes.length > 0;
  const never = bytes.length + 1;
  const whole = {
    bytes,
    fullAt: [bytes.length],
    acceptFrom: bytes.length,
    lineFrom: never,
    endFrom: never,
    publicBytes: 0,
    inPieces: false,
    begins: true,
  };
  return { short: true, patterns: asWritten ? [whole] : [] };
}
