// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { toolNamespaces } from "../../src/codex/tool-namespaces.ts";

const short = { longestCallName: 64 };
const n = (length: number): string => "n".repeat(length);

// What the real 0.144.4 and 0.171.0 made of these names.
describe("the namespaces of tool servers", () => {
  it("are mcp__ and the name, with _ for -, unless the name begins so itself", () => {
    expect(toolNamespaces([], short)).toEqual([]);
    expect(toolNamespaces(["office", "mail-box", "mcp__x", "A", "a"], short)).toEqual([
      "mcp__office",
      "mcp__mail_box",
      "mcp__x",
      "mcp__A",
      "mcp__a",
    ]);
  });

  it("of names that are one to Codex have a hash each, or none while only one of the servers lists its tools", () => {
    expect(toolNamespaces(["a-b", "a_b"], short)).toEqual(["mcp__a_b", "mcp__a_b_e0598e406614", "mcp__a_b_909e3df97957"]);
    expect(toolNamespaces(["mcp__a", "a"], short)).toEqual(["mcp__a", "mcp__a_fd11f3cbfd58", "mcp__a_865ce3a35284"].toSorted());
  });

  it("have it before a __ at the end", () => {
    expect(toolNamespaces(["_", "-"], short)).toEqual(["mcp___", "mcp__461f9f39b448__", "mcp__69520730213c__"]);
  });

  it("are two where the name is so long that tools with longer names go elsewhere", () => {
    expect(toolNamespaces([n(44)], short)).toEqual([`mcp__${n(44)}`]);
    expect(toolNamespaces([n(45)], short)).toEqual([`mcp__${n(45)}`, `mcp__${n(44)}`]);
    expect(toolNamespaces([n(108)], { longestCallName: 128 })).toEqual([`mcp__${n(108)}`]);
    expect(toolNamespaces([n(109)], { longestCallName: 128 })).toEqual([`mcp__${n(109)}`, `mcp__${n(108)}`]);
  });
});
