// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { canonicalise, EscapeReader, readCutMarker } from "../../src/redact/canonical.ts";

const MARKER = "... (truncated 130 bytes)";
const read = (text: string, options = {}): string => Buffer.from(canonicalise(Buffer.from(text), options).bytes).toString();

describe("readCutMarker", () => {
  const at = (text: string): number => readCutMarker(Buffer.from(text), 0, Buffer.byteLength(text));

  it("gives the end of a marker, wherever it stands", () => {
    expect(at(MARKER)).toBe(MARKER.length);
    expect(at(`${MARKER}...`)).toBe(MARKER.length);
    expect(at(`... (truncated ${"9".repeat(20)} bytes)`)).toBe(MARKER.length + 17);
    const inside = Buffer.from(`xx${MARKER}`);
    expect(readCutMarker(inside, 2, inside.length)).toBe(inside.length);
    expect(readCutMarker(inside, 2, inside.length - 1)).toBe(-1);
    expect(readCutMarker(inside, 1, inside.length)).toBe(0);
  });

  it("does not know it of its beginnings", () => {
    for (let length = 0; length < MARKER.length; length++) expect(at(MARKER.slice(0, length)), `${length} characters`).toBe(-1);
  });

  it("takes nothing else for one", () => {
    for (let place = 0; place < MARKER.length; place++) {
      if (/\d/.test(MARKER[place]!)) continue;
      expect(at(`${MARKER.slice(0, place)}#${MARKER.slice(place + 1)}`), `at ${place}`).toBe(0);
    }
    for (const other of [
      "... (truncated  bytes)",
      "... (truncated 1/2 bytes)",
      "... (truncated 1:2 bytes)",
      `... (truncated ${"9".repeat(21)} bytes)`,
    ]) {
      expect(at(other), other).toBe(0);
    }
  });
});

describe("the canonical reading", () => {
  it.each<[what: string, readings: Record<string, string>]>([
    ["short escapes", { "a\\nb": "a\nb", "\\t\\r\\b\\f\\0": "\t\r\b\f\0", "\\\"\\'\\/": "\"'/", "\\\\n": "\n", "\\q\\": "q" }],
    ["a run of backslashes", { [`${"\\".repeat(63)}n`]: "\n", [`${"\\".repeat(64)}n`]: "n", [`${"\\".repeat(65)}n`]: "\n" }],
    [
      "unicode escapes",
      {
        "\\u0041\\u00e9\\u65E5": "Aé日",
        "\\u{41}\\u{e9}\\u{1f600}": "Aé😀",
        "\\\\\\u00E9": "é",
        "\\u{110000}\\u{10ffff}": "\ufffd\u{10ffff}",
        "\\u00g9 \\u00 \\u": "u00g9 u00 u",
        "\\u{} \\u{41 \\u{0000041}": "u{} u{41 u{0000041}",
      },
    ],
    [
      "surrogate pairs",
      {
        "\\ud83d\\ude00 \\uD83D\\\\\\uDE00": "😀 😀",
        "\\ud800\\udc00\\udbff\\udfff": "\u{10000}\u{10ffff}",
        "\\ud83d": "\ufffd",
        "\\ud83dude00": "\ufffdude00",
        "\\ud83d\\n": "\ufffd\n",
        "\\ud83d\\u0041 \\ud83d\\ue000": "\ufffdA \ufffd\ue000",
        "\\ude00": "\ufffd",
        "\\udc00\\udc00": "\ufffd\ufffd",
      },
    ],
    ["hex bytes", { "\\x41\\xc3\\xA9": "Aé", "\\x0a\\x40": "\n@", "\\x4@ \\x4` \\x4:": "x4@ x4` x4:", "\\xg1 \\x1g \\x4": "xg1 x1g x4" }],
    [
      "percent escapes",
      {
        "%41%c3%A9": "Aé",
        "%2541 %252541": "A A",
        "%250a%2540 %4@": "\n@ %4@",
        [`%${"25".repeat(4)}41`]: "A",
        [`%${"25".repeat(5)}41`]: "%41",
        "%zz %4z %4": "%zz %4z %4",
        "%25zz %254z %25": "%zz %4z %",
        "%2641": "&41",
        "%": "%",
      },
    ],
    [
      "escaped escape signs",
      {
        "%5cn %5Cu0041 %255cn \\%5cn": "\n A \n \n",
        "\\u005cn \\u{5c}q \\u005c": "\n q ",
        '\\u005cu0041 \\u{5c}u{e9} \\x5cu0041 \\u005c\\u005C\\"': 'A é A "',
        "\\%41 \\%4": "A %4",
        "%5c%41": "A",
      },
    ],
  ])("undoes %s", (_what, readings) => {
    for (const [text, expected] of Object.entries(readings)) expect(read(text), text).toBe(expected);
  });

  it("says where in the original each byte ends", () => {
    const { bytes, ends } = canonicalise(Buffer.from("a\\nb%41é\\u00e9\\\\q"));
    expect(Buffer.from(bytes).toString()).toBe("a\nbAééq");
    expect([...ends]).toEqual([1, 3, 4, 7, 8, 9, 15, 15, 18]);
  });

  it("ends after as many bytes as asked for, and not inside an escape", () => {
    expect(read("abc", { maxBytes: 2 })).toBe("ab");
    expect(read("a\\u00e9b", { maxBytes: 2 })).toBe("aé");
    expect(read("", { maxBytes: 2 })).toBe("");
  });

  it("takes an escape that a cut breaks off for nothing, and without a cut for its own characters", () => {
    for (const cut of ["\\u", "\\u0", "\\u00e", "\\u{", "\\u{e9", "\\ud83d\\u", "\\ud83d\\ude0", "\\x", "\\xe", "%", "%e"]) {
      expect(read(`a${cut}`, { endsAtCut: true }), cut).toBe("a");
      expect(read(`a${cut}${MARKER}`), cut).toBe(`a${MARKER}`);
      expect(read(`a${cut}`).length, cut).toBeGreaterThan(1);
      expect(read(`a${cut}.. (tr`).length, cut).toBeGreaterThan(7);
    }
  });
});

describe("a percent sign that a cut may have left of a byte that is percent-encoded twice", () => {
  const maybeCut = (text: string, endsAtCut: boolean): number => {
    const reader = new EscapeReader(endsAtCut);
    reader.read(Buffer.from(text), 0, Buffer.byteLength(text), true);
    expect(Buffer.from(reader.bytes.subarray(0, reader.count)).toString(), text).toBe("%");
    return reader.maybeCutAt;
  };

  it("is told with the place of the cut, wherever it is one", () => {
    expect(["%25", "%25C", "%2525", "%2525c"].map((text) => maybeCut(text, true))).toEqual([3, 4, 5, 6]);
    expect(["%25", "%25C", "%2525"].map((text) => maybeCut(text + MARKER, false))).toEqual([3, 4, 5]);
    expect(["%25", "%25C", "%25 ", "%25.", "%25z", "%25C... (", "%25zz"].map((text) => maybeCut(text, false))).toEqual(Array(7).fill(0));
  });
});

describe("an escape of which more may come", () => {
  const next = (text: string, final: boolean): number => new EscapeReader(false).read(Buffer.from(text), 0, Buffer.byteLength(text), final);

  it("is waited for, until there is no more", () => {
    for (const begun of [
      "\\",
      "\\\\",
      "\\u",
      "\\u00e",
      "\\u{e9",
      "\\ud83d",
      "\\ud83d\\",
      "\\ud83d\\ude0",
      "\\x4",
      "\\u005c",
      "%",
      "%4",
      "%25",
      "%254",
      "%25... (trunc",
      "%25C... (",
      "\\x5",
      "\\u005cu00",
    ]) {
      expect(next(begun, false), begun).toBe(-1);
      expect(next(begun, true), begun).toBeGreaterThan(0);
    }
    for (const begun of ["\\u00... (trunc", "\\x4... (", "%4."]) {
      expect(next(begun, false), begun).toBe(-1);
      expect(next(begun, true), begun).toBeGreaterThan(0);
    }
  });

  it("is read at once where it is complete", () => {
    const complete: Record<string, number> = {
      "\\n": 2,
      "\\u00e9": 6,
      "\\u{e9}": 6,
      "\\ud83d\\ude00": 12,
      "\\x41": 4,
      "%41": 3,
      "%2541": 5,
      "%25z": 3,
      "\\q": 1,
    };
    for (const [text, end] of Object.entries(complete)) expect(next(text, false), text).toBe(end);
  });
});
