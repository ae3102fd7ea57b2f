// SPDX-License-Identifier: Apache-2.0
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { buildSecretSet, redactTail, redactText } from "../../src/redact/index.ts";
import { leakedPieces } from "./leaks.ts";

/** A string, or pieces of which [character, count] stand for a run. */
type Packed = string | (string | [string, number])[];

function unpack(packed: Packed): string {
  const parts = typeof packed === "string" ? [packed] : packed;
  return parts.map((part) => (typeof part === "string" ? part : part[0].repeat(part[1]))).join("");
}

/** Real stderr of Codex 0.144.4 and 0.171.0 against servers that echo the headers they were sent. */
const recordings = readFileSync("test/fixtures/redact/token-echoes.jsonl", "utf8")
  .trimEnd()
  .split("\n")
  .map((line) => JSON.parse(line) as { case: string; headers: [string, Packed][]; stderr: Packed })
  .map(({ case: name, headers, stderr }) => ({
    name,
    secrets: headers.map(([header, value]) => ({ name: header, value: unpack(value) })),
    stderr: unpack(stderr),
  }));

/** Runs of one letter are padding as well as parts of the longest tokens: they say nothing. */
function tellingLeaks(text: string, secrets: { value: string }[]): string[] {
  return secrets.flatMap(({ value }) => leakedPieces(text, value)).filter((piece) => new Set(piece).size > 1);
}

describe("recorded echoes of tokens", () => {
  it.each(recordings)("$name shows no piece of a token [R12 R13 R14 C1]", ({ secrets, stderr }) => {
    const set = buildSecretSet(secrets);
    expect(tellingLeaks(redactText(set, stderr), secrets)).toEqual([]);
    expect(tellingLeaks(redactTail(set, stderr), secrets)).toEqual([]);
    // A tail window that begins in the middle of an echo.
    for (const from of [1, 500, 1000].map((back) => Math.max(0, stderr.length - back))) {
      const window = redactTail(set, stderr.slice(from), { startsMidStream: true });
      expect(tellingLeaks(window, secrets)).toEqual([]);
    }
  });

  it("show their tokens before they are redacted, or the test above would prove nothing", () => {
    const showing = recordings.filter(({ secrets, stderr }) => tellingLeaks(stderr, secrets).length > 0);
    expect(recordings).toHaveLength(154);
    expect(showing.length).toBeGreaterThan(90);
    const silent = recordings.filter((recording) => !showing.includes(recording)).map(({ name }) => name);
    // Servers that echoed nothing: Codex dropped the header, or there was no value, or the request was refused.
    expect(silent.filter((name) => !/empty|cr-|nul-|newline-|del-|latin1-|unicode-|long20k|optional/.test(name))).toEqual([]);
  });

  it("keep what is not secret", () => {
    for (const { secrets, stderr } of recordings) {
      const tail = redactTail(buildSecretSet(secrets), stderr);
      if (stderr.includes("Error: thread/start")) expect(tail).toContain("handshaking with MCP server failed");
    }
  });
});
