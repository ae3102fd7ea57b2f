// SPDX-License-Identifier: Apache-2.0
import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import * as fc from "fast-check";
import { buildSecretSet, type createRedactStream, type redactText, type SecretSet } from "../../src/redact/index.ts";
import { readings } from "./leaks.ts";

/** What is held to the properties; a planted fault takes its place where the search itself is tried. */
export interface Redactor {
  redactText: typeof redactText;
  createRedactStream: typeof createRedactStream;
}

const PIECE = 8;
const letters = fc.constantFrom(...Array.from("abcXYZ0189-_.~+/= \"'\\%\n\t:,é日😀\u007f&<"));
const arbitraryText = fc.oneof(
  fc.string({ unit: letters, maxLength: 60 }),
  fc.string({ unit: "binary", maxLength: 60 }),
  fc.string({ maxLength: 60 }),
);

const wellFormed = (text: string): string => Buffer.from(text).toString();

/** What is searched for at all: at least 4 characters are left when escapes are read (see patternsOf). */
function isLong(value: string): boolean {
  return wellFormed(value) === value && value.replace(/\\+(?:u\{?[0-9a-f]*\}?|x..)?|%../gis, "").trim().length >= 4;
}

const secret = fc
  .oneof(
    fc.string({ unit: letters, minLength: 4, maxLength: 60 }),
    fc.string({ unit: "grapheme", minLength: 4, maxLength: 40 }),
    fc.string({ unit: "binary", minLength: 4, maxLength: 40 }),
    fc
      .tuple(fc.string({ unit: letters, minLength: 4, maxLength: 20 }), fc.integer({ min: 1, max: 400 }))
      .map(([part, times]) => part.repeat(times).slice(0, 8192)),
  )
  .filter(isLong);

/** One to five values, some of which begin with the same characters. */
const secrets = fc
  .tuple(fc.string({ unit: letters, maxLength: 20 }), fc.array(fc.tuple(fc.boolean(), secret), { minLength: 1, maxLength: 5 }))
  .map(([shared, values]) => values.map(([shares, value]) => (shares ? shared + value : value)).filter(isLong))
  .filter((values) => values.length > 0);

const json = (text: string): string => JSON.stringify(text).slice(1, -1);
const asciiJson =
  (upper: boolean) =>
  (text: string): string =>
    json(text).replace(/[^ -~]|\//g, (unit) => {
      if (unit === "/") return "\\/";
      const hex = unit.charCodeAt(0).toString(16).padStart(4, "0");
      return `\\u${upper ? hex.toUpperCase() : hex}`;
    });
/** As Rust's Debug prints a string; what it leaves alone is left alone. */
const rustDebug = (text: string): string =>
  text.replace(/["\\']|\p{Cc}|é/gu, (one) => {
    const short = { '"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\0": "\\0", "'": "\\'" }[one];
    return short ?? `\\u{${one.codePointAt(0)!.toString(16)}}`;
  });
const percent = (text: string): string => encodeURIComponent(text);
const encodings: [string, (text: string) => string][] = [
  ["percent", percent],
  ["percent", percent],
];

type Embedding = { name: string; embed: (text: string) => string };
const embedding: fc.Arbitrary<Embedding> = fc
  .array(
    fc.constantFrom(["json", json], ["ascii", asciiJson(false)], ["ASCII", asciiJson(true)], ["debug", rustDebug]) as fc.Arbitrary<
      [string, (text: string) => string]
    >,
    { maxLength: 3 },
  )
  .chain((escapes) => fc.nat(2).map((times) => [...encodings.slice(0, times), ...escapes]))
  .map((escapes) => ({
    name: escapes.map(([name]) => name).join(" in ") || "as written",
    embed: (text) => escapes.reduce((inner, [, escape]) => escape(inner), text),
  }));

/** Pieces of a secret in any reading of `text`, except those that the surroundings hold by themselves. */
function survivingPieces(text: string, values: readonly string[], surroundings: readonly string[]): string[] {
  const seen = readings(text.replaceAll("[redacted]", "\u0001\u0002\u0001"));
  const own = surroundings.flatMap(readings);
  const pieces = values.flatMap((value) => {
    const points = Array.from(value);
    return Array.from({ length: Math.max(0, points.length - PIECE + 1) }, (_, at) => points.slice(at, at + PIECE).join(""));
  });
  return [...new Set(pieces)].filter(
    (piece) => !/^\\*$/.test(piece) && seen.some((reading) => reading.includes(piece)) && !own.some((reading) => reading.includes(piece)),
  );
}

async function throughStream(
  { createRedactStream }: Redactor,
  set: SecretSet,
  bytes: Uint8Array,
  sizes: readonly number[],
): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for (let at = 0, turn = 0; at < bytes.length; turn++) {
    const size = sizes[turn % sizes.length]!;
    chunks.push(bytes.subarray(at, at + size));
    at += size;
  }
  return buffer(Readable.from(chunks, { objectMode: false }).pipe(createRedactStream(set)));
}

const none = (pieces: readonly string[]): void => deepStrictEqual(pieces, []);

const cut = fc.constantFrom("marker", "end", "copy", "begin", "middle", "window");
const noise = fc.oneof(arbitraryText, fc.constantFrom("... (truncated 12 bytes)", "\\\\", "\\u00", "%25", "%", "\n"));
const chunkSizes = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 8 });

/** No piece of a secret survives, whatever is around it. */
export function survivesNowhere(redactor: Redactor) {
  return fc.property(secrets, arbitraryText, arbitraryText, embedding, fc.nat(), (values, before, after, { embed }, choice) => {
    const value = values[choice % values.length]!;
    const shown = redactor.redactText(buildSecretSet(values.map((one) => ({ value: one }))), embed(`${before}\n${value}\n${after}`));
    none(survivingPieces(shown, [value], [embed(before), embed(after), before, after]));
  });
}

/** No piece of a cut-off secret survives before a proven cut, nor of one in whose middle the window begins. */
export function survivesNoCut(redactor: Redactor) {
  return fc.property(secrets, embedding, fc.nat(), fc.nat(), cut, (values, { embed }, choice, at, kind) => {
    const value = values[choice % values.length]!;
    const set = buildSecretSet(values.map((one) => ({ value: one })));
    const whole = embed(value);
    const length = 1 + (at % whole.length);
    const begin = choice % length;
    const shown = {
      marker: () => redactor.redactText(set, `=${whole.slice(0, length)}... (truncated 7 bytes), and so on`),
      end: () => redactor.redactText(set, `=${whole.slice(0, length)}`, { endsAtCut: true }),
      copy: () =>
        redactor.redactText(
          set,
          `=${embed(
            Array.from(value)
              .slice(0, 1 + (at % Array.from(value).length))
              .join(""),
          )}${whole}=`,
        ),
      middle: () => redactor.redactText(set, `${whole.slice(begin, length)}... (truncated 7 bytes), and so on`, { startsMidStream: true }),
      window: () => redactor.redactText(set, whole.slice(begin, length), { startsMidStream: true, endsAtCut: true }),
      begin: () => redactor.redactText(set, `${whole.slice(length)}=and so on`, { startsMidStream: true }),
    }[kind]();
    none(survivingPieces(shown, [value], []));
  });
}

const plainLetters = fc.constantFrom(...Array.from("abcXYZ0189-_.~+/:,é日😀&<"));

/**
 * Whichever side was cut off, and with nothing that proves it: 12 characters or half of a value go; so do those that its base64, in lines of
 * 76 columns too, and its hex were cut into.
 */
export function eitherEnd(redactor: Redactor) {
  return fc.property(
    fc.string({ unit: plainLetters, minLength: 4, maxLength: 90 }),
    embedding,
    fc.nat(),
    fc.nat(),
    (value, { embed }, one, other) => {
      const points = Array.from(value);
      const least = Math.min(12, Math.max(4, Math.ceil(points.length / 2)));
      const length = least + (one % (points.length - least + 1));
      const set = buildSecretSet([{ value }]);
      const gone = `${embed("#")}[redacted]${embed("#")}`;
      const shown = (text: string): string => redactor.redactText(set, embed(`#${text}#`));
      strictEqual(shown(points.slice(points.length - length).join("")), gone);
      strictEqual(shown(points.slice(0, length).join("")), gone);
      if (points.length < 24) return;
      const from = other % (points.length - length + 1);
      strictEqual(shown(points.slice(from, from + length).join("")), gone);
      const before = "#".repeat(other % 200); // so that its lines break anywhere
      const whole = Buffer.from(`${before}${value}`);
      for (const [coding, bits] of [
        ["base64", 6],
        ["hex", 4],
      ] as const) {
        const coded = whole.toString(coding);
        const [begins, ends] = [Math.ceil((before.length * 8) / bits), Math.floor((whole.length * 8) / bits)];
        const left = redactor.redactText(set, coded.replace(/.{76}/g, "$&\n")).replaceAll("\n", "");
        // On each side of a line's end less than 12 may stay.
        const windows = Array.from({ length: Math.max(0, ends - begins - 22) }, (_, at) => coded.slice(begins + at, begins + at + 23));
        none(windows.filter((window) => left.includes(window)));
      }
    },
  );
}

/** Text without secrets is returned as it is. */
export function harmless(redactor: Redactor) {
  return fc.property(arbitraryText, arbitraryText, (text, more) => {
    // None of these begins in the text, not even by one character ("=" keeps base64 of them from beginning).
    const set = buildSecretSet([{ value: "ĀĂĄĆĈĊČĎ" }, { value: "ŐŒŔŖŘŚ" }]);
    strictEqual(redactor.redactText(set, `${text}=... (truncated 3 bytes)${more}`), `${text}=... (truncated 3 bytes)${more}`);
  });
}

/** The stream gives the same as the text, however it is cut into chunks. */
export function streamed(redactor: Redactor) {
  return fc.asyncProperty(
    secrets,
    fc.array(fc.tuple(noise, fc.nat(), embedding, fc.nat()), { maxLength: 6 }),
    chunkSizes,
    async (values, parts, sizes) => {
      const set = buildSecretSet([...values, "q7"].map((value) => ({ value })));
      const piece = (choice: number, length: number): string => wellFormed(values[choice % values.length]!.slice(0, 1 + (length % 80)));
      const text = wellFormed(parts.map(([around, choice, { embed }, length]) => around + embed(piece(choice, length))).join(""));
      strictEqual((await throughStream(redactor, set, Buffer.from(text), sizes)).toString(), redactor.redactText(set, text));
    },
  );
}

/** Bytes that are no UTF-8 pass the stream unharmed. */
export function foreignBytes(redactor: Redactor) {
  return fc.asyncProperty(fc.uint8Array({ maxLength: 300 }), chunkSizes, async (bytes, sizes) => {
    const set = buildSecretSet([{ value: "ĀĂĄĆĈĊČĎ-ŐŒŔŖ" }]);
    deepStrictEqual(await throughStream(redactor, set, bytes, sizes), Buffer.from(bytes));
    const around = Buffer.concat([bytes, Buffer.from("=ĀĂĄĆĈĊČĎ-ŐŒŔŖ=")]);
    strictEqual(
      (await throughStream(redactor, set, around, sizes)).toString("latin1"),
      `${Buffer.from(bytes).toString("latin1")}=[redacted]=`,
    );
  });
}
