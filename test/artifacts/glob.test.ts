// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from "vitest";
import { compileGlobs } from "../../src/artifacts/glob.ts";

function matches(pattern: string, path: string): boolean {
  return (compileGlobs(pattern) ?? []).some((glob) => {
    let state = glob.start as ReturnType<typeof glob.step>;
    for (const name of path.split("/")) state = state && glob.step(state, name);
    return state !== null && glob.matches(state);
  });
}

describe("a glob", () => {
  test.each<[pattern: string, takes: string[], leaves: string[]]>([
    ["report.pdf", ["report.pdf"], ["report.pdfx", "x/report.pdf", "Report.pdf"]],
    ["*.pdf", ["a.pdf", "a b\n.pdf"], ["a.pdf2", "x/a.pdf", ".pdf", ".a.pdf"]],
    ["**/*.pdf", ["a.pdf", "x/a.pdf", "x/y/a.pdf"], ["x/a.txt", ".git/a.pdf"]],
    ["out", ["out", "out/a", "out/x/b.txt"], ["output", "x/out", "out/.hidden"]],
    ["out/", ["out/a"], ["a"]],
    ["./out/**", ["out/a", "out/x/b"], ["a"]],
    ["**", ["a", "x/y/z"], [".env", ".git/config", "x/.env"]],
    ["**/.env", [".env", "x/.env"], ["env", ".git/.env"]],
    [".github/**", [".github/x.yml"], ["github/x.yml"]],
    ["a/**/z", ["a/z", "a/b/z", "a/b/c/z"], ["a/b/c", "z"]],
    ["?.txt", ["a.txt", "😀.txt", "é.txt"], ["ab.txt", ".txt"]],
    ["[a-c]x[!0-9]", ["axz", "cx-"], ["dxz", "ax1"]],
    ["[]]x", ["]x"], ["x"]],
    ["{a,b/{c,d}}.txt", ["a.txt", "b/c.txt", "b/d.txt"], ["b.txt", "{a,b}.txt"]],
    ["{a}", ["{a}"], ["a"]],
    ["\\*\\{a,b\\}", ["*{a,b}"], ["x{a,b}", "*a"]],
    ["a[b", ["a[b"], ["ab"]],
    ["*-*-*.docx", ["a-b-c.docx", "--.docx"], ["a-b.docx", "a-b-c.docx.txt"]],
  ])("%s takes what it names and nothing else", (pattern, takes, leaves) => {
    expect(takes.filter((path) => !matches(pattern, path))).toEqual([]);
    expect(leaves.filter((path) => matches(pattern, path))).toEqual([]);
  });

  test.each(["", "/", "/etc/*", "..", "../x", "a/../../x", "a/\\.\\./x", "{a,..}/x", "{a,b}".repeat(7)])(
    "%j is refused: it leaves the workdir, or has too many alternatives",
    (pattern) => expect(compileGlobs(pattern)).toBeNull(),
  );

  test("costs milliseconds on a name made to be slow", () => {
    const started = performance.now();
    expect(matches(`${"*a".repeat(50)}b`, "a".repeat(255))).toBe(false);
    expect(matches(`${"**/a/".repeat(50)}b`, "a/".repeat(500) + "a")).toBe(false);
    expect(performance.now() - started).toBeLessThan(2_000);
  });
});
