// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { buildSecretSet, emptySecretSet, redactText, type SecretInput } from "../../src/redact/index.ts";

const MARKER = "... (truncated 13 bytes)";

function redact(values: (string | SecretInput)[], text: string, options = {}): string {
  return redactText(buildSecretSet(values.map((value) => (typeof value === "string" ? { value } : value))), text, options);
}

const escaped = (value: string): string => JSON.stringify(value).slice(1, -1);

describe("forms", () => {
  it("replaces a header value as written [R12 C1]", () => {
    expect(redact(["FAKE-tok-1"], 'Using custom headers: {"X-Tok":"FAKE-tok-1"}')).toBe('Using custom headers: {"X-Tok":"[redacted]"}');
    expect(redact(["FAKE-tok-1"], "\u001b[31mFAKE-tok-1\u001b[0m.")).toBe("\u001b[31m[redacted]\u001b[0m.");
  });

  it("replaces it JSON-escaped none to three times, with quotes, backslashes, newlines and other letters [R13 C1]", () => {
    for (const value of [
      'FAKE-a"b\\c d',
      "FAKE\nline\ttab",
      "FAKE-é-日本-😀-end",
      '"FAKE"',
      "FAKE/slash/es",
      "nFAKE\\\\u0041",
      "\\nFAKE\\x",
    ]) {
      let form = value;
      for (let level = 0; level <= 3; level++) {
        expect(redact([value], `say <${form}>.`), `level ${level} of ${value}`).toMatch(/^say <\\*\[redacted\]>\.$/);
        form = escaped(form);
      }
    }
  });

  it("replaces \\u escapes in both cases, surrogate pairs, escaped slashes and Rust's debug escapes [R13 C1]", () => {
    const value = "FAKE-é/'😀-end";
    for (const form of [
      "FAKE-\\u00e9\\/'\\ud83d\\ude00-end",
      "FAKE-\\u00E9\\u002F'\\uD83D\\uDE00-end",
      "FAKE-\\\\u00e9\\\\/'\\\\uD83D\\\\uDE00-end",
      "FAKE-\\u{e9}/\\'\\u{1f600}-end",
      "FAKE-\\xc3\\xa9/'😀-end",
    ]) {
      expect(redact([value], `<${form}>`), form).toBe("<[redacted]>");
    }
    expect(redact(["FAKE\\name-1"], "<FAKE\\u005cname-1>")).toBe("<[redacted]>");
  });

  it("replaces percent-encoded copies, once or twice encoded, in either case [C1]", () => {
    const value = 'FAKE a/b"é\\+%41';
    const once = encodeURIComponent(value);
    const form = once.replaceAll("%20", "+");
    for (const copy of [once, once.toLowerCase().replace("fake", "FAKE"), encodeURIComponent(once), form]) {
      expect(redact([value], `/x?t=${copy}&y`), copy).toBe("/x?t=[redacted]&y");
    }
  });

  it("replaces base64 of the value, and of anything that ends in it, such as user:value [C1]", () => {
    const value = "FAKE-tok?>-12345";
    for (const before of ["", "u:", "us:", "user:"]) {
      for (const encoding of ["base64", "base64url"] as const) {
        const shown = redact([value], `Basic ${Buffer.from(before + value).toString(encoding)} end`);
        expect(shown).toMatch(/^Basic [A-Za-z0-9+/_-]{0,7}\[redacted\] end$/);
      }
    }
  });

  it("takes the credentials of Bearer and Basic, the trimmed value and each cookie as secrets", () => {
    expect(redact(["Bearer FAKE-x1"], "token FAKE-x1, Bearer FAKE-x1")).toBe("token [redacted], [redacted]");
    expect(redact(["  FAKE-padded  "], "got [FAKE-padded]")).toBe("got [[redacted]]");
    const basic = `Basic ${Buffer.from("joe:FAKE-pass").toString("base64")}`;
    expect(redact([basic], "password FAKE-pass of joe")).toBe("password [redacted] of joe");
    expect(redact([{ name: "Cookie", value: "a=FAKE-1234; b=FAKE-9876" }], "FAKE-9876")).toBe("[redacted]");
    expect(redact([{ name: "Authorization", value: "Weird FAKE-w" }], "FAKE-w")).toBe("[redacted]");
  });

  it("replaces values with spaces [R18]", () => {
    expect(redact(["aaa bbb ccc"], "x aaa bbb ccc y")).toBe("x [redacted] y");
  });

  it("finds a value although what stands before it looks like an escape together with it", () => {
    expect(redact(["new-token-1"], "C:\\new-token-1")).toBe("C:[redacted]");
    expect(redact(["deadbeef99"], "100%deadbeef99 100%25deadbeef99")).toBe("100[redacted] 100[redacted]");
    // A copy cut inside a percent escape, directly followed by a whole one: only the digit that completes it is left.
    expect(redact(["a-token-value"], "%aa-token-value")).toBe("%aa[redacted]");
  });
});

describe("cut-off copies", () => {
  it("hides a value that is cut off, through its last echoed character [R14]", () => {
    expect(redact(["Bearer aaa bbb"], `got Bearer aaa b${MARKER}, when`)).toBe(`got [redacted]${MARKER}, when`);
    const value = 'FAKE"x\\yé-1';
    for (let length = 1; length <= value.length; length++) {
      for (const form of [value.slice(0, length), escaped(value.slice(0, length)), escaped(escaped(value.slice(0, length)))]) {
        expect(redact([value], `=${form}${MARKER}`)).toMatch(/^=\\*\[redacted\]\\*\.\.\. \(truncated 13 bytes\)$/);
        expect(redact([value], `=${form}`, { endsAtCut: true })).toMatch(/^=\[redacted\]$/);
      }
    }
  });

  it("hides a copy that is cut in the middle of an escape [R14]", () => {
    for (const cut of ["FAKE\\", "FAKE\\u", "FAKE\\u00", "FAKE\\\\u00e", "FAKE%", "FAKE%C", "FAKE%C3"]) {
      expect(redact(["FAKEé-token-1"], `=${cut}${MARKER}`), cut).toBe(`=[redacted]${MARKER}`);
      expect(redact(["FAKEé-token-1"], `=${cut}`, { endsAtCut: true }), cut).toBe("=[redacted]");
    }
  });

  it("hides a copy that is cut in the middle of a character [R14]", () => {
    expect(redact(["TOKEN-😀-1234567"], `=TOKEN-\ufffd${MARKER}`)).toBe(`=[redacted]${MARKER}`);
    expect(redact(["TOKEN-😀-1234567"], "=TOKEN-\ud83d", { endsAtCut: true })).toBe("=[redacted]");
    expect(redact(["TOKEN-😀-1234567"], `=\ufffd${MARKER} \ufffd`)).toBe(`=\ufffd${MARKER} \ufffd`);
  });

  it("hides a cut-off copy directly followed by a full one, or by another cut-off one [R15]", () => {
    expect(redact(["tok-abcdef"], "=tok-tok-abcdef.")).toBe("=[redacted].");
    expect(redact(["tok-abcdef"], "=tok-abcdetok-abcdef.")).toBe("=[redacted][redacted].");
    expect(redact(["tok-abcdef"], "=totok-tok-abcdef.")).toBe("=[redacted].");
    expect(redact(["tok-abcdef", "key-123456"], `=key-tok-abcdef,keytok-a${MARKER}`)).toBe(`=[redacted],[redacted]${MARKER}`);
  });

  it("hides a prefix of 12 characters or half the value anywhere, and of 4 at the end of a line", () => {
    expect(redact(["abcdefghijklmnopqrstuvwxyz0123456789"], "=abcdefghijklX")).toBe("=[redacted]X");
    expect(redact(["abcdefghijklmnopqrstuvwxyz0123456789"], "=abcdefghijkX")).toBe("=abcdefghijkX");
    expect(redact(["abcdefghij"], "=abcdeX abcdX")).toBe("=[redacted]X abcdX");
    expect(redact(["abcdefghijklmnop"], "=abcd\n=abc\n=abcd")).toBe("=[redacted]\n=abc\n=[redacted]");
    expect(redact(["éééééééééééééééééééééééé"], "=ééééééééééééè")).toBe("=[redacted]è");
    // è begins with the byte that é begins with: it is not torn apart.
    expect(redact(["éééééééééééééééééééééééé"], `=ééééééééééè${MARKER}`)).toBe(`=ééééééééééè${MARKER}`);
  });

  it("leaves the scheme alone, which is no secret", () => {
    expect(redact(["Bearer FAKE-AUTH-1"], "WWW-Authenticate: Bearer realm\nBearer\n")).toBe("WWW-Authenticate: Bearer realm\nBearer\n");
  });

  it("hides the end of a value in whose middle the window begins [R14]", () => {
    const value = 'FAKE-"q-é-tail';
    const options = { startsMidStream: true };
    for (let from = 1; from < value.length; from++) {
      for (const form of [
        value.slice(from),
        escaped(value).slice(from),
        JSON.stringify(value)
          .replace("é", "\\u00e9")
          .slice(from + 1, -1),
      ]) {
        expect(redact([value], `${form}] and more`, options), form).toBe("[redacted]] and more");
      }
    }
    const long = "tokenABCDEFGHIJKLMNOPQRSTUVWXYZ";
    expect(redact([long], `kenAB${MARKER}`, options)).toBe(`[redacted]${MARKER}`);
    expect(redact([long], "kenAB", { startsMidStream: true, endsAtCut: true })).toBe("[redacted]");
    expect(redact([long], "kenAB, kenAB", options)).toBe("kenAB, kenAB");
    expect(redact([long], "kenABCDEFGHIJ, and", options)).toBe("[redacted], and");
    expect(redact([value], "nothing of it", options)).toBe("nothing of it");
    expect(redact([value], "tail] and more")).toBe("tail] and more");
  });
});

describe("several values", () => {
  it("keeps values that share a prefix apart, in either order [R16 C6]", () => {
    for (const values of [
      ["tok-abc", "tok-abcdef"],
      ["tok-abcdef", "tok-abc"],
    ]) {
      expect(redact(values, "1 tok-abc, 2 tok-abcdef, 3 tok-abcxyz")).toBe("1 [redacted], 2 [redacted], 3 [redacted]xyz");
    }
  });

  it("matches against the original only: a value in [redacted] corrupts nothing [R17 C6]", () => {
    expect(redact(["tok-1234", "redacted", "[redacted]", "[", "act"], "x tok-1234 y redacted z [redacted]")).toBe(
      "x [redacted] y [redacted] z [redacted]",
    );
  });

  it("replaces all of what overlaps, and one value inside another [C6]", () => {
    expect(redact(["abcdefgh", "efghijklmnopqrst"], "=abcdefghijklmnopqrst.")).toBe("=[redacted].");
    expect(redact(["FAKE-outer-FAKE-inner-end", "FAKE-inner"], "=FAKE-outer-FAKE-inner-end, FAKE-inner.")).toBe("=[redacted], [redacted].");
  });

  it("finds a value inside the beginning of a longer one that does not go on [C6]", () => {
    expect(redact(["<<<<FAKE-inner-abcdefghijklmnopqrst", "FAKE"], "=<<<<FAKE=")).toBe("=[redacted]=");
  });

  it("takes values literally, ends on empty ones and on a common word, and gives text without secrets back [C6]", () => {
    expect(redact([".*+?^${}()|[]\\", "", "   "], "a .*+?^${}()|[]\\ b")).toMatch(/^a \[redacted\]\\? b$/);
    expect(redact(["error"], "an error, errors")).toBe("an [redacted], [redacted]s");
    const text = "plain \\u00zz %zz \\ text, 100% \ud800 lone, \u0000 \\";
    expect(redact(["FAKE-token-123"], text)).toBe(text);
    expect(redactText(emptySecretSet, "FAKE-token-123")).toBe("FAKE-token-123");
  });

  it("counts the bytes of every character before a secret rightly", () => {
    for (const first of ["\u007f", "\u0080", "\u07ff", "\u0800", "\uffff", "\u{10000}", "\u{10ffff}"]) {
      expect(redact(["FAKE-token-123"], `${first.repeat(9)}FAKE-token-123${first}.`)).toBe(`${first.repeat(9)}[redacted]${first}.`);
    }
  });

  it("takes a whole window for a piece of a value only where the window's end is a cut", () => {
    expect(redact(["=======FAKE-token========"], "oken", { startsMidStream: true })).toBe("oken");
    expect(redact(["=======FAKE-token========"], "oken", { startsMidStream: true, endsAtCut: true })).toBe("[redacted]");
  });

  it("keeps lone surrogates beside a secret as they are", () => {
    expect(redact(["FAKE-token-123"], "\ud800é FAKE-token-123 \udc00😀")).toBe("\ud800é [redacted] \udc00😀");
  });

  it("replaces values of one to three characters in text, as written", () => {
    expect(redact(["x9", '"'], 'a x9b "c"')).toBe("a [redacted]b [redacted]c[redacted]");
    expect(redact(["\\n", "%41"], "line\nnext A")).toBe("line\nnext A");
  });

  it("takes time that grows with the text and not with its square, also when 50 values and the text are made to be slow [C6]", () => {
    const values = Array.from({ length: 50 }, (_, index) => `${"a".repeat(index * 20)}FAKE-${index}-"token"`);
    const lines = Array.from(
      { length: 9000 },
      (_, index) => `line ${index}: ${escaped(values[index % 50]!).slice(0, 40)} ${"aaaa \\\\ %41 ".repeat(5)}\n`,
    );
    const text = lines.join("").slice(0, 2 ** 20);
    const set = buildSecretSet(values.map((value) => ({ value })));
    const elapsed = (of: string): number => {
      const started = performance.now();
      redactText(set, of);
      return performance.now() - started;
    };
    // Four times the text takes four times as long; sixteen where it is quadratic. The least of several pairs, for busy machines.
    for (const hard of [text, "a".repeat(2 ** 20), "\\".repeat(2 ** 20), "%25".repeat(2 ** 18), "\\u005c".repeat(2 ** 17)]) {
      const quarter = hard.slice(0, hard.length / 4);
      const ratios = Array.from({ length: 7 }, () => elapsed(hard) / elapsed(quarter));
      expect(Math.min(...ratios), hard.slice(0, 12)).toBeLessThan(10);
    }
  });
});
