// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { buildSecretSet, isPlainWord, isSecretName, redactText, secretsOfEnv, secretsOfUrl } from "../../src/redact/index.ts";

const values = (inputs: { value: string }[]): string[] => inputs.map(({ value }) => value);

describe("what is secret", () => {
  it("tells secret names and plain words", () => {
    expect(["API_KEY", "github_token", "ClientSecret", "DB_PASSWORD", "X-Auth"].every(isSecretName)).toBe(true);
    expect(["PATH", "LANG", "HOME", "DEBUG"].some(isSecretName)).toBe(false);
    for (const word of ["true", "0", "8080", "en_US.UTF-8", "C.UTF-8", "/home/agent/.codex", "/usr/bin:/bin", "none", " "]) {
      expect(isPlainWord(word), word).toBe(true);
    }
    for (const word of ["hunter2", "FAKE-1", "123456", "/9j4AAQSkZJRgABAQ", "correct horse"]) expect(isPlainWord(word), word).toBe(false);
  });

  it.each([
    ["words", "TRUE  yes | no |enable|enabled|disable|disabled|oauth|oauth2|jwt|mcp", "xtrue|truex|true false|oauth3|enabledd"],
    ["numbers", "0|7|65535|12345", "123456|1a|a1|x12345|12345x|ab|-1"],
    [
      "locales",
      "C|POSIX|en_US|fil_PH|C.UTF-8|de_DE.ISO-8859-15@euro|ca_ES@valencia",
      "xC|Cx|C.|C.é|C@|C@é|C.UTF 8|e_US|abcd_US|EN_US|en_us|en_U|en_USA",
    ],
    [
      "paths of the sandbox",
      "/tmp|/tmp/|/usr/local/bin:/usr/bin:/bin|/opt/a.b+c@d-e_1/f|/home/agent/.codex:|/workspace/x",
      "x/tmp|tmp|/tmpx|/other/tmp|/tmp/a b|/tmp/é|/tmp:x|/tmp x|/|/9j4/tmp|/tmp/a/tmp=b",
    ],
  ])("tells plain words from values: %s", (_what, plain, telling) => {
    const wrong = (of: string, expected: boolean): string[] => of.split(/\||  /).filter((one) => isPlainWord(one) !== expected);
    expect(wrong(plain, true)).toEqual([]);
    expect(wrong(telling, false)).toEqual([]);
  });

  it("takes variables by their mark, else by their name unless the value is a plain word", () => {
    const env = {
      API_KEY: "FAKE-1",
      USE_AUTH: "true",
      REGION: "eu-central",
      NOTE: { value: "FAKE-2", secret: true },
      PUBLIC_KEY: { value: "FAKE-3", secret: false },
      TOKEN: { value: "FAKE-4" },
    };
    expect(values(secretsOfEnv(env))).toEqual(["FAKE-1", "FAKE-2", "FAKE-4"]);
  });

  it("takes user, password and query values of a URL", () => {
    const url = "https://joe:p%40ss-w0rd@host:1/mcp?key=FAKE%20k1&mode=true#access_token=FAKE-a2";
    expect(values(secretsOfUrl(url)).toSorted()).toEqual(["FAKE k1", "FAKE-a2", "joe", "joe:p@ss-w0rd", "p@ss-w0rd"]);
    expect(secretsOfUrl("not a url")).toEqual([]);
    expect(secretsOfUrl("http://host/mcp")).toEqual([]);
    expect(secretsOfUrl("http://joe@host/mcp?k=FAKE-q#access_token=FAKE-a2")).toEqual([
      { value: "joe" },
      { name: "k", value: "FAKE-q" },
      { name: "access_token", value: "FAKE-a2" },
    ]);
    expect(values(secretsOfUrl("http://basic:FAKE%zz@host"))).toEqual(["FAKE%zz", "basic:FAKE%zz"]);
    expect(redactText(buildSecretSet(secretsOfUrl(url)), `cannot reach ${url}`)).toBe(
      "cannot reach https://[redacted]@host:1/mcp?key=[redacted]&mode=true#access_token=[redacted]",
    );
  });
});
