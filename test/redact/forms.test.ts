// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { patternsOf, secretsWithin } from "../../src/redact/forms.ts";

const basic = (credentials: string | Uint8Array): string => Buffer.from(credentials as string, "latin1").toString("base64");
/** What is secret besides the value itself. */
const within = (value: string, name?: string): string[] => [
  ...new Set(
    secretsWithin(name === undefined ? { value } : { value, name })
      .map((one) => one.value)
      .filter((one) => one !== value),
  ),
];

describe("the secrets inside a secret", () => {
  it("are the value without the blanks around it, and nothing of blanks", () => {
    expect(within(" FAKE-1\t")).toEqual(["FAKE-1"]);
    expect(within("FAKE-1")).toEqual([]);
    for (const blank of ["", " ", "\t\n"]) expect(secretsWithin({ value: blank })).toEqual([]);
  });

  it("are the credentials after a scheme that is known, or any scheme of an authorization header", () => {
    for (const scheme of ["bearer", "Basic", "TOKEN", "digest", "negotiate", "apikey", "api-key", "key", "jwt", "oauth"]) {
      expect(within(`${scheme} FAKE-1`), scheme).toEqual(["FAKE-1"]);
    }
    expect(within("Bearer \t FAKE-1")).toEqual(["FAKE-1"]);
    for (const other of ["Bearer", "xBearer FAKE-1", "Weird FAKE-1", "Bearer-FAKE-1"]) expect(within(other), other).toEqual([]);
    for (const name of ["Authorization", "proxy-authorization"]) {
      expect(within("Weird \t FAKE-1", name)).toEqual(["FAKE-1"]);
      expect(within("We(ird FAKE-1", name)).toEqual([]);
      expect(within(" Weird FAKE-1", name)).toEqual(["Weird FAKE-1", "FAKE-1"]);
    }
    for (const name of ["X-Tok", "Authorization-2"]) expect(within("Weird FAKE-1", name)).toEqual([]);
  });

  it("are user and password of Basic, where they are text and the password has four characters", () => {
    const coded = (credentials: string): string[] => within(`Basic ${basic(credentials)}`).slice(1);
    expect(coded("joe:FAKE")).toEqual(["joe:FAKE", "FAKE"]);
    expect(coded(":FAKE")).toEqual([":FAKE", "FAKE"]);
    expect(coded("joe:b:FAKE")).toEqual(["joe:b:FAKE", "b:FAKE"]);
    for (const none of ["joe:abc", "joe-FAKE", "\xffjoe:FAKE", "joe:FAKE\xff", "joe\xff:FAKE"]) expect(coded(none), none).toEqual([]);
    expect(within(`Bearer ${basic("joe:FAKE")}`)).toEqual([basic("joe:FAKE")]);
  });

  it("are the values of cookies, from four characters on", () => {
    for (const name of ["Cookie", "set-cookie"]) {
      expect(within("a=FAKE-1; b= abcd ;c=abc;d;=;FAKE-2", name)).toEqual(["FAKE-1", "abcd", "FAKE-2"]);
    }
    for (const name of ["X-Cookie", "Cookies", undefined]) expect(within("a=FAKE-1; b=FAKE-2", name)).toEqual([]);
  });
});

describe("the forms of a secret", () => {
  const forms = (value: string, name?: string): ReturnType<typeof patternsOf> =>
    patternsOf(name === undefined ? { value } : { value, name });
  const texts = (value: string): string[] =>
    forms(value)
      .patterns.filter(({ begins }) => begins)
      .map(({ bytes }) => Buffer.from(bytes).toString());
  const depths = (value: string): number[] => {
    const { acceptFrom, lineFrom, endFrom } = forms(value).patterns[0]!;
    return [acceptFrom, lineFrom, endFrom];
  };

  it("are none but itself, whole, below four characters", () => {
    for (const value of ["a", "abc", "日本語"]) {
      const length = Buffer.byteLength(value);
      const [only, ...others] = forms(value).patterns;
      expect([forms(value).short, others]).toEqual([true, []]);
      expect(only).toMatchObject({
        bytes: new Uint8Array(Buffer.from(value)),
        fullAt: [length],
        acceptFrom: length,
        lineFrom: length + 1,
        endFrom: length + 1,
        inPieces: false,
      });
    }
    // Fewer than four characters when its escapes are read: nothing that could be found as written.
    for (const value of ["\\n", "%41", "ab\\", "\\u0041b"]) expect(forms(value)).toEqual({ short: true, patterns: [] });
    expect(forms("abcd").short).toBe(false);
  });

  it("begin to count at half the value, at four characters at least and twelve at most", () => {
    expect(depths("zyxw")).toEqual([4, 4, 1]);
    expect(depths("zyxwvzyxwv")).toEqual([5, 4, 1]);
    expect(depths("zyxwvzyxwvz")).toEqual([6, 4, 1]);
    expect(depths("z".repeat(100))).toEqual([12, 4, 1]);
    expect(depths("日本語日本語日本語日")).toEqual([15, 12, 1]);
    expect(depths("é日z😀é")).toEqual([2 + 3 + 1 + 4, 2 + 3 + 1 + 4, 1]);
  });

  it("do not count a scheme, which is no secret", () => {
    expect(depths("Bearer zyxwvzyxwv")).toEqual([7 + 5, 7 + 4, 1]);
    expect(forms("Weird zyxwvzyxwv", "Authorization").patterns[0]).toMatchObject({ acceptFrom: 6 + 5, lineFrom: 6 + 4 });
  });

  it("are those that an escape sign before the value leaves of it, and that with plus signs for blanks", () => {
    expect(texts("zyxw")).toEqual(["zyxw"]);
    expect(texts("z yx")).toEqual(["z yx", "z+yx"]);
    expect(texts("nyxw")).toEqual(["nyxw", "\nyxw"]);
    expect(texts("uyxw")).toEqual(["uyxw", "uyxw"]);
    expect(texts("4zyxw")).toEqual(["4zyxw", "zyxw"]);
    expect(texts("41yxw")).toEqual(["41yxw", "Ayxw", "1yxw"]);
    expect(texts("41yx")).toEqual(["41yx"]);
    expect(texts("a9zyx")).toEqual(["a9zyx", "9zyx"]);
    expect(texts("a9zyxw").slice(0, 3)).toEqual(["a9zyxw", "zyxw", "9zyxw"]);
  });

  it("are the base64 of six bytes or more at each of three places, also in its URL form", () => {
    expect(texts("zyxwv")).toEqual(["zyxwv"]);
    const [, ...encoded] = forms("zyxwvu").patterns.filter(({ begins }) => begins);
    expect(encoded.map(({ bytes, fullAt }) => [Buffer.from(bytes).toString(), fullAt])).toEqual([
      ["enl4d3Z1", [8, 8, 8]],
      ["p5eHd2dQ==", [7, 8, 10]],
      ["6eXh3dnU=", [7, 8, 9]],
    ]);
    for (const { endFrom, lineFrom } of encoded) expect([endFrom, lineFrom]).toEqual([4, 4]);
    const urls = texts("zyx?>?>~~").filter((text) => /[-_]/.test(text));
    expect(urls.length).toBeGreaterThan(0);
    for (const url of urls) expect(texts("zyx?>?>~~")).toContain(url.replaceAll("-", "+").replaceAll("_", "/"));
  });
});
