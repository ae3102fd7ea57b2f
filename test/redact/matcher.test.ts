// SPDX-License-Identifier: Apache-2.0
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { describe, expect, it } from "vitest";
import { buildSecretSet, createRedactStream, redactText } from "../../src/redact/index.ts";

const MARKER = "... (truncated 13 bytes)";

/** The text redacted whole, which must be what the stream makes of it in pieces of every size. */
async function redacted(value: string, text: string, endsAtCut = false): Promise<string> {
  const set = buildSecretSet([{ value }]);
  const whole = redactText(set, text, { endsAtCut });
  for (const size of [1, 2, 3, 4, 1000]) {
    const bytes = Buffer.from(text);
    const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) => bytes.subarray(at * size, (at + 1) * size));
    const streamed = await buffer(Readable.from(chunks).pipe(createRedactStream(set, { endsAtCut })));
    expect(streamed.toString(), `in pieces of ${size}`).toBe(whole);
  }
  return whole;
}

describe("a character that was cut", () => {
  const value = "TOKEN-😀-1234567";

  it("belongs to the copy before it where a cut follows, and nowhere else [R14]", async () => {
    expect(await redacted(value, `=TOKEN-\ufffd${MARKER}`)).toBe(`=[redacted]${MARKER}`);
    expect(await redacted(value, "=TOKEN-\ufffd", true)).toBe("=[redacted]");
    for (const other of ["=TOKEN-\ufffd", "=TOKEN-\ufffd.", "=TOKEN-\ufffd... (", "=TOKEN-\uffee", "=TOKEN-\uf000"]) {
      expect(await redacted(value, other)).toBe(other);
    }
    expect(await redacted(value, `=TOKEN-\uffee${MARKER}`)).toBe(`=TOKEN-\uffee${MARKER}`);
    expect(await redacted(value, "=TOKEN-\ufffd... (", true)).toBe("=TOKEN-\ufffd... (");
  });
});

describe("a byte that is percent-encoded twice and cut", () => {
  it("belongs to the copy before it, whichever of its characters is the last [R14]", async () => {
    for (const left of ["%", "%2", "%25", "%25C", "%25C3", "%25C3%", "%25C3%25", "%25C3%25A"]) {
      expect(await redacted("FAKE-tok-é-1234567890", `=FAKE-tok-${left}${MARKER}`), left).toBe(`=[redacted]${MARKER}`);
      expect(await redacted("FAKE-tok-é-1234567890", `=FAKE-tok-${left}`, true), left).toBe("=[redacted]");
    }
  });

  it("may also be a percent sign of the value", async () => {
    for (const left of ["%25", "%25z", "%25zo"]) {
      expect(await redacted("%zoo-token-1234567", `=${left}${MARKER}`), left).toBe(`=[redacted]${MARKER}`);
    }
    expect(await redacted("FAKE-tok-é-1234567890", `=FAKE-tok-%25C.`)).toBe("=FAKE-tok-%25C.");
  });
});

describe("what stands between the bytes of a value", () => {
  it("may be 1,024 escape signs and no more", async () => {
    const apart = (count: number): string => `=FAKE-to${"\\".repeat(count)}ken-1234=`;
    expect(await redacted("FAKE-token-1234", apart(1024))).toBe("=[redacted]=");
    expect(await redacted("FAKE-token-1234", apart(1025))).toBe(apart(1025).replace("ken-1234", "[redacted]"));
    // Counted anew after each byte.
    expect(await redacted("FAKE-token-1234", `=FAKE-to${"\\".repeat(640)}k${"\\".repeat(640)}en-1234=`)).toBe("=[redacted]=");
  });
});

describe("a prefix at the end of a line", () => {
  it("is replaced from four characters on, also where the line break is escaped", async () => {
    for (const end of ["\n", "\r", "\\n", "\\r", "\\\\n", "\\u000a", "%0D"]) {
      expect(await redacted("FAKE-token-1234", `=FAKE-${end}more`), end).toBe(`=[redacted]${end}more`);
      expect(await redacted("FAKE-token-1234", `=FAK${end}more`), end).toBe(`=FAK${end}more`);
    }
    for (const other of ["\t", "\\t", "\\u0009", "%09", "\\\\", "."]) {
      expect(await redacted("FAKE-token-1234", `=FAKE-${other}more`), other).toBe(`=FAKE-${other}more`);
    }
  });
});

describe("cut-off copies directly before a whole one", () => {
  it("are followed back four times", async () => {
    expect(await redacted("tok-abcdef", `=${"to".repeat(4)}tok-abcdef.`)).toBe("=[redacted].");
    expect(await redacted("tok-abcdef", `=${"to".repeat(6)}tok-abcdef.`)).toBe("=toto[redacted].");
  });
});
