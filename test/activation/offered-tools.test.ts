// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it, onTestFinished } from "vitest";
import { startBrokenServer } from "../../examples/stand-ins/broken-server.ts";
import { lookAfterwards, toolsNotOffered } from "../../src/activation/offered-tools.ts";
import { refusedNote, refusedTools } from "../../src/activation/refused-tool.ts";
import { httpGrant, stdioGrant } from "../codex/config-input.ts";

describe("which required tools nobody offered", () => {
  const grant = httpGrant("office", "http://127.0.0.1:1/mcp");

  it("is told only when the tools of every server are known", () => {
    const grants = [grant, httpGrant("mail", "http://127.0.0.1:1/mcp")];
    const office: [string, string[]] = ["office", ["read"]];
    expect(toolsNotOffered(["finish", "read"], grants, new Map([office, ["mail", []]]))).toEqual(["finish"]);
    expect(toolsNotOffered(["finish"], grants, new Map([office]))).toEqual([]);
    expect(toolsNotOffered(["finish"], [], new Map())).toEqual(["finish"]);
  });

  it("leaves out what Codex offers itself", () => {
    expect(toolsNotOffered(["exec_command", "finish"], [grant], new Map([["office", []]]))).toEqual(["finish"]);
  });

  it("is found out by asking a server that nobody looked at, once, and not against the grant's word", async () => {
    const server = await startBrokenServer("hang", { at: "tools/call", tools: ["read"] });
    onTestFinished(() => server.close());
    const asked = httpGrant("office", server.url);
    expect(await lookAfterwards([{ ...asked, preflight: false }], new Map(), {})).toEqual(new Map());
    expect(await lookAfterwards([asked, stdioGrant("local", { command: "/bin/true" })], new Map(), {})).toEqual(new Map());
    expect(server.requests()).toBe(0);
    const found = await lookAfterwards([asked], new Map(), {});
    expect(found).toEqual(new Map([["office", ["read"]]]));
    const before = server.requests();
    expect(await lookAfterwards([asked], found, {})).toBe(found);
    expect(server.requests()).toBe(before);
  });

  it("stays open where the server does not answer", async () => {
    const server = await startBrokenServer("status", { status: 500 });
    onTestFinished(() => server.close());
    expect(await lookAfterwards([httpGrant("office", server.url)], new Map(), {})).toEqual(new Map());
  });
});

describe("which tool a model server means that it does not take", () => {
  const refusal = (message: string, param: string): string => JSON.stringify({ error: { message, param } });
  const tooLong = (length: number, param = "tools[7].name"): string =>
    refusal(
      `Invalid '${param}': string too long. Expected a string with maximum length 64, but got a string with length ${length} instead.`,
      param,
    );
  const long = "t".repeat(90);

  it.each<[string, string, string[], Record<string, string[]>, object]>([
    [
      "its name's length",
      tooLong(90),
      ["mail", "office"],
      { mail: ["send", "u".repeat(70)], office: [long] },
      { server_names: ["office"], tools: [long] },
    ],
    ["the length of the server's own name", tooLong(75), ["s".repeat(70), "office"], {}, { server_names: ["s".repeat(70)], tools: [] }],
    [
      "the function that is named",
      refusal("Invalid schema for function 'send': no", "tools[9].parameters"),
      ["mail"],
      { mail: ["send"] },
      { server_names: ["mail"], tools: ["send"] },
    ],
    [
      "the only server, whose tool is counted within it",
      tooLong(90, "tools[7].tools[2].name"),
      ["mail"],
      {},
      { server_names: ["mail"], tools: [] },
    ],
    ["nothing that is certain", tooLong(90), ["mail", "office"], {}, { server_names: [], tools: [] }],
  ])("by %s", (_how, text, servers, offered, expected) => {
    expect(refusedTools(text, servers, new Map(Object.entries(offered)))).toEqual(expected);
  });

  it("is said in the reason", () => {
    expect(refusedNote({ server_names: ["mail"], tools: ["send"] })).toBe('\nThe model server refuses "send" of the tool server "mail".');
    expect(refusedNote({ server_names: [], tools: [] })).toBe("");
  });
});
