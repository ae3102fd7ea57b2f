// SPDX-License-Identifier: Apache-2.0
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { buildSecretSet, emptySecretSet, redactValue } from "../../src/redact/index.ts";

const set = buildSecretSet([{ value: 'FAKE-a"b\\c d' }, { value: "FAKE-plain" }, { value: "x9" }]);

describe("redactValue", () => {
  it("redacts decoded strings and keys at every depth and gives valid JSON [R13 C1]", () => {
    const value = { text: 'got FAKE-a"b\\c d.', list: [1, null, { "key FAKE-plain": ["FAKE-plain"] }] };
    const redacted = redactValue(set, value);
    expect(redacted).toEqual({ text: "got [redacted].", list: [1, null, { "key [redacted]": ["[redacted]"] }] });
    expect(JSON.stringify(redacted)).not.toContain("FAKE");
  });

  it("redacts a string that holds JSON text, so that it still is JSON [R13]", () => {
    let text = JSON.stringify({ headers: { a: 'FAKE-a"b\\c d', b: "kept" } });
    for (let level = 0; level < 3; level++) {
      let inner: unknown = redactValue(set, { text }).text;
      for (let undone = 0; undone <= level; undone++) inner = JSON.parse(inner as string);
      expect(inner).toEqual({ headers: { a: "[redacted]", b: "kept" } });
      text = JSON.stringify(text);
    }
  });

  it("replaces values of one to three characters only where they are a whole string", () => {
    expect(redactValue(set, { x9: "x9", kept: "ax9b" })).toEqual({ "[redacted]": "[redacted]", kept: "ax9b" });
  });

  it("keeps all entries when keys become equal", () => {
    const object = { "FAKE-plain": 1, 'FAKE-a"b\\c d': 2, "[redacted]": 3, __proto__: 4 };
    expect(new Set(Object.values(redactValue(set, object)))).toEqual(new Set(Object.values(object)));
    const named: unknown = JSON.parse('{"__proto__":"FAKE-plain"}');
    expect(JSON.stringify(redactValue(set, named))).toBe('{"__proto__":"[redacted]"}');
  });

  it("leaves a key its name where another one becomes it, and numbers those that become equal", () => {
    const object = { "FAKE-plain": 1, 'FAKE-a"b\\c d': 2, "[redacted]": 3 };
    expect(redactValue(set, object)).toEqual({ "[redacted] 2": 1, "[redacted] 3": 2, "[redacted]": 3 });
    expect(redactValue(set, { "FAKE-plain": 1 })).toEqual({ "[redacted]": 1 });
  });

  it("looks into plain objects of every origin and leaves other values alone", () => {
    const bare: unknown = Object.assign(Object.create(null) as object, { a: "FAKE-plain" });
    expect(redactValue(set, bare)).toEqual({ a: "[redacted]" });
    const date = new Date(0);
    const named = new (class {
      token = "FAKE-plain";
    })();
    expect(redactValue(set, { a: undefined, b: "x9", date, named, number: 1, yes: true })).toEqual({
      a: undefined,
      b: "[redacted]",
      date,
      named: { token: "FAKE-plain" },
      number: 1,
      yes: true,
    });
  });

  it("gives back the very value when there is nothing to hide", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const harmless = buildSecretSet([{ value: "ĀĂĄĆĈĊČĎ" }]);
        expect(redactValue(harmless, value)).toBe(value);
        expect(redactValue(emptySecretSet, value)).toBe(value);
      }),
    );
  });
});
