// SPDX-License-Identifier: Apache-2.0
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { describe, expect, onTestFinished, test } from "vitest";
import { startBrokenServer, type BrokenKind, type BrokenServerOptions } from "../../examples/stand-ins/broken-server.ts";
import { startOfficeTools, type OfficeTools, type OfficeToolsOptions } from "../../examples/stand-ins/office-tools.ts";
import { SESSION_TOKEN_HEADER, sessionTokens } from "../../examples/stand-ins/session-tokens.ts";

async function officeTools(options: OfficeToolsOptions = {}): Promise<OfficeTools> {
  const tools = await startOfficeTools(options);
  onTestFinished(() => tools.close());
  return tools;
}

async function client(url: string, token?: string): Promise<Client> {
  const client = new Client({ name: "test", version: "1.0.0" });
  const headers: Record<string, string> = token === undefined ? {} : { [SESSION_TOKEN_HEADER]: token };
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }));
  onTestFinished(() => client.close());
  return client;
}

const search = { name: "web_search", arguments: { query: "travel policy" } };

describe.each(["json", "sse"] as const)("with %s replies", (replies) => {
  test("lists its tools to anybody, but runs none without a token of its own [R41]", async () => {
    const tools = await officeTools({ replies });
    const anybody = await client(tools.url);
    expect((await anybody.listTools()).tools.map(({ name }) => name)).toEqual([
      "finish",
      "abandon_task_finish",
      "web_search",
      "fetch_web_page",
    ]);
    await expect(anybody.callTool(search)).rejects.toThrow("no valid session token");
    const forger = await client(tools.url, sessionTokens("another secret").mint("session-1"));
    await expect(forger.callTool(search)).rejects.toThrow("no valid session token");
    expect(tools.calls.map(({ session_id, outcome }) => [session_id, outcome])).toEqual([
      [null, "refused"],
      [null, "refused"],
    ]);
  });

  test("a token opens its own session's tools only [R41]", async () => {
    const tools = await officeTools({ replies });
    const [searcher, finisher] = [
      await client(tools.url, tools.mintToken("searcher", ["web_search"])),
      await client(tools.url, tools.mintToken("finisher")),
    ];
    await searcher.callTool(search);
    await expect(searcher.callTool({ name: "finish", arguments: { reason: "x", paths: [] } })).rejects.toThrow("may not call finish");
    await finisher.callTool({ name: "finish", arguments: { reason: "done", paths: ["/workspace/a.txt"] } });
    expect(tools.calls.map(({ session_id, tool, outcome }) => [session_id, tool, outcome])).toEqual([
      ["searcher", "web_search", "ok"],
      ["searcher", "finish", "refused"],
      ["finisher", "finish", "ok"],
    ]);
  });
});

test("a payload changed under an old signature is no token", () => {
  const tokens = sessionTokens();
  const [payload, signature] = tokens.mint("session-1", ["finish"]).split(".");
  const changed = Buffer.from(JSON.stringify({ sid: "session-2", tools: null })).toString("base64url");
  expect(tokens.verify(`${payload}.${signature}`)).toEqual({ sessionId: "session-1", tools: ["finish"] });
  expect(tokens.verify(`${changed}.${signature}`)).toBeNull();
  expect(tokens.verify("")).toBeNull();
});

test("search finds the same pages every time, a page is read, an unknown page or tool is an error the model can read", async () => {
  const tools = await officeTools();
  const mcp = await client(tools.url, tools.mintToken("s"));
  const call = (name: string, args: Record<string, unknown>) => mcp.callTool({ name, arguments: args });
  const found = await call("web_search", { query: "travel policy hotels" });
  expect(found).toEqual(await call("web_search", { query: "travel policy hotels" }));
  expect(JSON.stringify(found)).toContain("https://intranet.example/policies/travel");
  expect(await call("fetch_web_page", { url: "https://tax.example/vat-rates" })).not.toHaveProperty("isError");
  expect(await call("fetch_web_page", { url: "https://tax.example/none" })).toMatchObject({ isError: true });
  expect(JSON.stringify(await call("frobnicate", {}))).toContain("Available tools: finish");
  expect(await call("finish", { reason: 1 })).toMatchObject({ isError: true });
});

test("finish takes its paths as a list, as JSON and as one bare name", async () => {
  const tools = await officeTools();
  const mcp = await client(tools.url, tools.mintToken("s"));
  for (const paths of [["/a"], '["/a"]', "/a"]) {
    expect(await mcp.callTool({ name: "finish", arguments: { reason: "done", paths } })).not.toHaveProperty("isError");
  }
});

async function initialize(kind: BrokenKind, options?: BrokenServerOptions): Promise<{ status: number; body: string } | "no answer"> {
  const server = await startBrokenServer(kind, options);
  onTestFinished(() => server.close());
  try {
    const response = await fetch(server.url, {
      method: "POST",
      headers: { [SESSION_TOKEN_HEADER]: 'to"ken' },
      body: JSON.stringify({ jsonrpc: "2.0", id: 7, method: "initialize" }),
      signal: AbortSignal.timeout(500),
    });
    return { status: response.status, body: await response.text() };
  } catch {
    return "no answer";
  }
}

test.each(["refuses", "hang", "close"] as const)("a broken server of kind %s gives no answer", async (kind) => {
  expect(await initialize(kind)).toBe("no answer");
});

test("a broken server repeats the token as asked", async () => {
  expect(await initialize("status", { status: 403, echo: "raw" })).toEqual({
    status: 403,
    body: 'the office tools are down (token to"ken)',
  });
  expect(await initialize("html", { echo: "json" })).toMatchObject({ status: 200, body: expect.stringContaining('"to\\"ken"') });
  const long = await initialize("status", { echo: "long" });
  expect(long).toMatchObject({ status: 401 });
  expect(JSON.stringify(long).length).toBeGreaterThan(100_000);
  expect(await initialize("jsonrpc_error")).toMatchObject({ status: 200, body: expect.stringContaining('"id":7,"error":{"code":-32001') });
});

test("a server that is broken in one request answers all others, late where it is told to, and its forgotten session answers nobody", async () => {
  const tools = await officeTools();
  const broken = async (kind: BrokenKind, options: BrokenServerOptions): Promise<string> => {
    const server = await startBrokenServer(kind, options);
    onTestFinished(() => server.close());
    return server.url;
  };
  const token = tools.mintToken("session-1");
  const refusing = await client(await broken("status", { at: "tools/list", status: 500 }), token);
  await expect(refusing.listTools()).rejects.toThrow("the office tools are down");
  expect(await (await client(await broken("status", { at: "tools/call", tools: [] }), token)).listTools()).toEqual({ tools: [] });
  const began = performance.now();
  const late = await client(await broken("slow", { at: "tools/list", late: { upstream: tools.url, ms: 300 } }), token);
  expect((await late.listTools()).tools).toHaveLength(4);
  expect(performance.now() - began).toBeGreaterThanOrEqual(295);
  const body = JSON.stringify({ jsonrpc: "2.0", id: 7, method: "tools/call", params: { name: "finish" } });
  const answer = await fetch(await broken("session_lost", { at: "tools/call" }), { method: "POST", body });
  expect([answer.status, await answer.json()]).toMatchObject([400, { id: null, error: { code: -32_000 } }]);
  expect(tools.calls).toEqual([]);
});
