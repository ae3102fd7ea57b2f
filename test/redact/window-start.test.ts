// SPDX-License-Identifier: Apache-2.0
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { buildSecretSet, redactText } from "../../src/redact/index.ts";
import { endOfBegunForm } from "../../src/redact/window-start.ts";

/** What the search computes, by trying every beginning of the window at every place of every form. */
function longestByTrial(patterns: ReturnType<typeof buildSecretSet>["text"]["patterns"], window: Buffer, endsAtCut: boolean): number {
  let longest = 0;
  for (const { bytes, acceptFrom, endFrom } of patterns) {
    const form = Buffer.from(bytes);
    for (let length = 1; length <= Math.min(window.length, form.length); length++) {
      const piece = window.subarray(0, length);
      const isEnd = length >= endFrom && form.subarray(-length).equals(piece);
      const isCut = length >= acceptFrom || (endsAtCut && length === window.length);
      if (isEnd || (isCut && form.includes(piece))) longest = Math.max(longest, length);
    }
  }
  return longest;
}

describe("a window that begins in the middle of a value", () => {
  it("hides as much as a trial of all pieces, also of values that repeat themselves", () => {
    // Neither letter may be the rest of an escape, so that the window is one reading.
    const letters = (minLength: number, maxLength: number): fc.Arbitrary<string> =>
      fc.string({ unit: fc.constantFrom("Y", "Z"), minLength, maxLength });
    fc.assert(
      fc.property(fc.array(letters(4, 30), { minLength: 1, maxLength: 3 }), letters(1, 20), fc.boolean(), (values, text, endsAtCut) => {
        const { text: automaton } = buildSecretSet(values.map((value) => ({ value })));
        const window = Buffer.from(text);
        const expected = longestByTrial(automaton.patterns, window, endsAtCut);
        expect(endOfBegunForm(automaton, window, endsAtCut)).toBe(expected);
      }),
      { numRuns: 500 },
    );
  });

  const { text: automaton } = buildSecretSet([{ value: "FAKEé-token-1234" }]);
  const hidden = (rest: string): boolean => {
    const end = endOfBegunForm(automaton, Buffer.from(`${rest}-token-1234] and more`, "latin1"), false);
    expect([0, rest.length + 11]).toContain(end);
    return end > 0;
  };

  it("may begin with what is left of an escape or a character", () => {
    const rests = "n r t b f 9 0e9 u00e9 x9 xe9 {e9} {e9 u{1f600} 1f600} } ude00 \\ude00 d\\ude00 ud83d\\ude00 d83d\\\\udf00 \\udc00".split(
      " ",
    );
    rests.push("\x80", "\xbf\x80", "\x9f\x98\x80", ...[1, 2, 3].map((times) => "\xef\xbf\xbd".repeat(times)));
    rests.push(`ud83d${"\\".repeat(8)}ude00`);
    expect(rests.filter((rest) => !hidden(rest))).toEqual([]);
  });

  it("does not begin with anything else", () => {
    const others =
      "k nn n0e9 0e9g g0e9 ug x{ { }} {}} u{0000000} 0000000 u0000000 xx9 u{{9 {e9}} ud83d\\ude0 uud83d\\ude00 kud83d\\ude00".split(" ");
    others.push("\xc3", "\x80\x80\x80\x80", "\xef\xbf\xbd".repeat(4), "\xef\xbf", "k\x80", "\x80k", `ud83d${"\\".repeat(9)}ude00`);
    expect(others.filter((rest) => hidden(rest))).toEqual([]);
  });

  it("needs four characters of a value after such a rest, and one without", () => {
    const shown = (text: string): string => redactText(buildSecretSet([{ value: "FAKEé-token" }]), text, { startsMidStream: true });
    expect(["n x", "en x", "fn x", "fen x", "foken x", "ftoken x"].map(shown)).toEqual([
      "[redacted] x",
      "[redacted] x",
      "fn x",
      "fen x",
      "[redacted] x",
      "[redacted] x",
    ]);
    const cut = redactText(buildSecretSet([{ value: "FAKEé-token" }]), "fen", { startsMidStream: true, endsAtCut: true });
    expect(cut).toBe("fen");
  });

  it("hides a piece up to the cut behind it, with what the cut left of an escape or a character [R14]", () => {
    const value = 'FAKE-token-abcdefgh"é😀ijklmnopqrstuvwxyz';
    const set = buildSecretSet([{ value }]);
    const marker = "... (truncated 9 bytes)";
    for (const left of [
      "",
      "\\",
      "\\\\",
      "\\u",
      "\\u002",
      "\\u{",
      "%",
      "%2",
      "%25",
      "%252",
      "\ufffd",
      '\\"\\u00e',
      '"%25C',
      '"\ufffd\ufffd',
    ]) {
      expect(redactText(set, `n-abcdefgh${left}${marker}`, { startsMidStream: true }), left).toBe(`[redacted]${marker}`);
      expect(redactText(set, `n-abcdefgh${left}`, { startsMidStream: true, endsAtCut: true }), left).toBe("[redacted]");
    }
    // The value goes on as the marker begins.
    const dotted = buildSecretSet([{ value: "FAKE-token.and-more-to-come" }]);
    expect(redactText(dotted, `KE-token${marker}`, { startsMidStream: true })).toBe(`[redacted]${marker}`);
    // What the cut left of "%2525" may be read as the value's own "%".
    const percents = buildSecretSet([{ value: "FAKE-token%aX-and-more-to-come" }]);
    for (const left of ["%", "%2", "%25", "%252", "%2525"]) {
      expect(redactText(percents, `KE-token${left}`, { startsMidStream: true, endsAtCut: true }), left).toBe("[redacted]");
    }
    const quoting = buildSecretSet([{ value: "FAKE-t... (truncated by hand, and more" }]);
    expect(redactText(quoting, `KE-t... (truncated by${marker}`, { startsMidStream: true })).toBe("[redacted][redacted]9 bytes)");
    for (const other of ["\\n", "%7e", "%25q", "\uefbd", "\ufebd", "\ufffe", "k"]) {
      expect(redactText(set, `n-abcdefgh${other}`, { startsMidStream: true, endsAtCut: true }), other).toBe(`n-abcdefgh${other}`);
    }
    for (const other of ["\\q", "\\n", "%41", "%25q", "%25.", "\ufffe", "\uf77d", ".", "\\", "%25"]) {
      expect(redactText(set, `n-abcdefgh${other}`, { startsMidStream: true }), other).toBe(`n-abcdefgh${other}`);
    }
  });
});
