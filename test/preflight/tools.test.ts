// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { alteredTools, toolsFinding } from "../../src/preflight/tools.ts";
import { profileFor } from "../../src/codex/profile.ts";

describe("what a server offers", () => {
  it.each<[tools: string[], expected: string[], found: string | null]>([
    [["finish", "search"], ["finish"], null],
    [["finish"], [], null],
    [[], [], "empty_list"],
    [[], ["finish"], "empty_list"],
    [["search"], ["finish", "search", "submit"], "tool_missing"],
    [["a".repeat(64)], [], null],
    [["a".repeat(65)], [], "tool_name_refused"],
    [["files.read"], ["files.read"], null],
  ])("%j, where %j is expected, is judged as %s", (tools, expected, found) => {
    expect(toolsFinding(tools, expected, profileFor("0.171.0"))?.case ?? null).toBe(found);
  });

  it("names what is missing beside what is there", () => {
    expect(toolsFinding(["search", "x"], ["finish"], profileFor("0.171.0"))?.what).toBe(
      'it does not offer "finish"; it offers "search", "x"',
    );
  });

  it("may have long names with a Codex that shortens them", () => {
    const long = "a".repeat(65);
    expect(toolsFinding([long], [], profileFor("0.144.4"))).toBeNull();
    expect(alteredTools([long, "ok"], profileFor("0.144.4"))).toEqual([long]);
    expect(alteredTools([long, "ok"], profileFor("0.171.0"))).toEqual([]);
  });

  it("is told where the model will see other names", () => {
    expect(alteredTools(["ok", "files.read", "a b", "x-y", "x_y", "twice", "twice", "z-1"], profileFor("0.171.0"))).toEqual([
      "files.read",
      "a b",
      "x-y",
      "x_y",
      "twice",
    ]);
  });
});
