// SPDX-License-Identifier: Apache-2.0
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { EXIT } from "../../src/rollout/exit-code.ts";

const readme = readFileSync(new URL("../../README.md", import.meta.url), "utf8");
const scripts = (JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as { scripts: Record<string, string> })
  .scripts;

describe("the README", () => {
  it("says what becomes of each kind of grant: accepted, refused, left out and recorded [R53]", () => {
    const table = /## What becomes of each grant\n([\s\S]*?)\n## /.exec(readme)?.[1] ?? "";
    for (const word of ["streamable_http", "stdio", "direct_http", "[A-Za-z0-9_-]+", "refused", "left out", "502 class", "422 class"]) {
      expect(table).toContain(word);
    }
    for (const gap of ["mcp_server_skipped", "tool_grant_skipped", "mcp_tool_names_altered"]) expect(table).toContain(gap);
  });

  it("says why the tool time-out must exceed the slowest call [R31]", () => {
    expect(readme).toMatch(/mcp_tool_timeout_seconds` must exceed the slowest call/);
    expect(readme).toMatch(/server goes on working[\s\S]*next call to that server waits/);
  });

  it("lists every exit code there is, and only commands that exist", () => {
    const listed = [...readme.matchAll(/^\| (\d+) +\|/gm)].map(([, code]) => Number(code));
    expect(listed).toEqual([...new Set(Object.values(EXIT))].sort((a, b) => a - b));
    for (const [, name] of readme.matchAll(/npm run ([a-z:]+)/g)) expect(Object.keys(scripts)).toContain(name);
  });

  it("names only files that are there", () => {
    for (const [, path] of readme.matchAll(/\]\(([^)#:]+)\)/g))
      expect(() => readFileSync(new URL(`../../${path}`, import.meta.url))).not.toThrow();
  });
});
