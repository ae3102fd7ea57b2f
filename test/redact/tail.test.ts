// SPDX-License-Identifier: Apache-2.0
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { buildSecretSet, redactTail } from "../../src/redact/index.ts";

const set = buildSecretSet([{ value: "FAKE-token-1234" }]);

describe("redactTail", () => {
  it("shortens a line of 1 MB, keeping its head and tail and saying how much was removed [R19]", () => {
    const line = `Error: head ${"x".repeat(2 ** 20)} tail (code -32603)`;
    const tail = redactTail(set, line);
    expect(tail.length).toBeLessThanOrEqual(2000);
    expect(tail).toMatch(/^Error: head x+ \[\.\.\. \d+ characters removed \.\.\.\] x+ tail \(code -32603\)$/);
    const removed = Number(/(\d+) characters removed/.exec(tail)![1]);
    expect(tail.length - ` [... ${removed} characters removed ...] `.length + removed).toBe(line.length);
  });

  it("keeps the last 2,000 characters of 500 lines [R19]", () => {
    const lines = Array.from({ length: 500 }, (_, index) => `line ${index} of stderr`).join("\n");
    expect(redactTail(set, lines)).toBe(lines.slice(-2000));
    expect(redactTail(set, lines, { maxChars: 50 })).toBe(lines.slice(-50));
    expect(redactTail(set, "short")).toBe("short");
    expect(redactTail(set, "short", { maxChars: 0 })).toBe("");
  });

  it("redacts before it cuts, so that no cut shows a piece of a secret [R19]", () => {
    for (let before = 1960; before <= 2010; before++) {
      const tail = redactTail(set, `FAKE-token-1234${"\nx".repeat(before / 2)}${before % 2 ? "y" : ""}`);
      expect(tail.replace("[redacted]", "")).toMatch(/^[\nxy]*$/);
      expect(tail.length).toBeLessThanOrEqual(2000);
    }
  });

  const digits = (length: number): string => Array.from({ length }, (_, index) => index % 10).join("");

  it.each([
    [{}, 1300],
    [{ maxChars: 400 }, 400],
  ])(
    "makes a line of 3,000 characters as long as may be, seven tenths of it head, and says exactly what is missing: %j",
    (options, length) => {
      const line = digits(3000);
      const tail = redactTail(set, line, options);
      const [, head = "", removed = "", end = ""] = /^(\d+) \[\.\.\. (\d+) characters removed \.\.\.\] (\d+)$/.exec(tail) ?? [];
      expect(tail).toHaveLength(length);
      expect([line.startsWith(head), line.endsWith(end), head.length + Number(removed) + end.length]).toEqual([true, true, 3000]);
      expect(head.length / (head.length + end.length)).toBeCloseTo(0.7, 2);
      expect(redactTail(set, line.slice(0, length), options)).toBe(line.slice(0, length));

      // What ends where the head does is kept whole; what only begins before that is left out.
      const before = `${digits(head.length - 10)}FAKE-token-1234`;
      expect(redactTail(set, before + digits(3000 - head.length), options)).toContain(`${digits(head.length - 10)}[redacted] [...`);
      const pair = `${digits(head.length - 1)}😀`;
      expect(redactTail(set, pair + digits(2999 - head.length), options)).toContain(`${digits(head.length - 1)} [...`);
    },
  );

  it("keeps a [redacted] or a character that just fits", () => {
    expect(redactTail(set, "FAKE-token-1234", { maxChars: 10 })).toBe("[redacted]");
    expect(redactTail(set, "x FAKE-token-1234", { maxChars: 10 })).toBe("[redacted]");
    expect(redactTail(set, "FAKE-token-1234 x", { maxChars: 11 })).toBe(" x");
    expect(redactTail(set, "x😀", { maxChars: 2 })).toBe("😀");
  });

  it("shortens a line without cutting what stands where the cut would be", () => {
    for (let shift = 0; shift < 12; shift++) {
      const tail = redactTail(set, "x".repeat(shift) + "FAKE-token-1234😀".repeat(300));
      expect(tail).toMatch(/^x*(?:\[redacted\]😀?)* \[\.\.\. \d+ characters removed \.\.\.\] (?:😀|\[redacted\])*$/u);
    }
  });

  it("never cuts through a surrogate pair or a [redacted]", () => {
    const pieces = fc.array(fc.constantFrom("😀", "FAKE-token-1234", "[redacted]", "x", "日"), { maxLength: 400 });
    const notice = / \[\.\.\. \d+ characters removed \.\.\.\] /;
    fc.assert(
      fc.property(pieces, fc.integer({ min: 0, max: 300 }), fc.boolean(), (parts, maxChars, lines) => {
        const tail = redactTail(set, parts.join(lines ? "\n" : ""), { maxChars });
        expect(tail.length).toBeLessThanOrEqual(maxChars);
        expect(Buffer.from(tail).toString()).toBe(tail);
        // Below 150 characters a line's notice may itself be cut.
        if (lines || maxChars >= 150) expect(tail.replace(notice, "").replaceAll("[redacted]", "")).toMatch(/^[x\n日😀]*$/u);
      }),
      { numRuns: 500 },
    );
  });
});
