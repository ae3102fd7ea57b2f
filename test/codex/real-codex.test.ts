// SPDX-License-Identifier: Apache-2.0
import type { IncomingHttpHeaders } from "node:http";
import { fileURLToPath } from "node:url";
import { glob } from "tinyglobby";
import { describe, expect, it, onTestFinished } from "vitest";
import { readBody, serveOnLoopback } from "../../examples/stand-ins/loopback.ts";
import { startModelServer, type ModelServer } from "../../examples/stand-ins/model-server.ts";
import { startBrokenServer, startOfficeTools, type OfficeTools } from "../../examples/stand-ins/office-tools.ts";
import { mcp, say, shell, step, type Item } from "../../examples/stand-ins/script.ts";
import { SESSION_TOKEN_HEADER } from "../../examples/stand-ins/session-tokens.ts";
import { planServers } from "../../src/activation/plan.ts";
import type { CodexConfigInput } from "../../src/codex/config.ts";
import { startupCause } from "../../src/codex/startup.ts";
import type { SessionActivationInput } from "../../src/contract/activation.ts";
import type { ToolGrant } from "../../src/contract/grant.ts";
import { configInput, httpGrant, stdioGrant } from "./config-input.ts";
import { launch, realBinaries } from "./launch.ts";
import { told } from "./recordings.ts";
import { profileFor } from "../../src/codex/profile.ts";

const binaries = await realBinaries();
const FINISH = { reason: "done", paths: ["/workspace/a.txt"] };

async function modelThatSays(...replies: Item[][]): Promise<ModelServer> {
  const model = await startModelServer({ scriptFor: () => ({ steps: replies.map((items) => step(...items)) }) });
  onTestFinished(() => model.close());
  return model;
}

async function officeTools(options = {}): Promise<OfficeTools> {
  const tools = await startOfficeTools(options);
  onTestFinished(() => tools.close());
  return tools;
}

function session(
  model: ModelServer,
  grants: readonly ToolGrant[],
  fields: Partial<SessionActivationInput> = {},
  timeouts: { startupSeconds?: number; toolSeconds?: number } = {},
): (paths: { workdir: string }) => CodexConfigInput {
  const { servers } = planServers(
    grants,
    { startupSeconds: timeouts.startupSeconds, toolSeconds: timeouts.toolSeconds },
    profileFor("0.144.4"),
  );
  return ({ workdir }) => configInput({ model: { base_url: model.captureBaseUrl }, ...fields }, { servers, workdir });
}

const tokenOf = (tools: OfficeTools): Record<string, string> => ({ [SESSION_TOKEN_HEADER]: tools.mintToken("session-1") });

interface NamespaceTool {
  type: string;
  name: string;
  tools?: { name: string }[];
}
function toolsSeen(model: ModelServer): NamespaceTool[] {
  return (model.log.requests()[0]?.request?.body.tools ?? []) as unknown as NamespaceTool[];
}

/** Stands before another server and keeps the headers that came. */
async function headerLog(target: string): Promise<{ url: string; headers: IncomingHttpHeaders[] }> {
  const headers: IncomingHttpHeaders[] = [];
  const server = await serveOnLoopback((request, response) => {
    headers.push(request.headers);
    void (async () => {
      const body = await readBody(request, 1_000_000);
      const forwarded = Object.entries(request.headers).flatMap(([name, value]) =>
        typeof value === "string" && !["host", "connection", "content-length"].includes(name) ? [[name, value] as [string, string]] : [],
      );
      const answer = await fetch(target, { method: request.method ?? "GET", headers: forwarded, ...(body === "" ? {} : { body }) });
      response.writeHead(answer.status, { "content-type": answer.headers.get("content-type") ?? "text/plain" });
      response.end(await answer.text());
    })();
  });
  onTestFinished(() => server.close());
  return { url: `${server.origin}/mcp`, headers };
}

describe.each(binaries)("real Codex $version", (binary) => {
  it("takes the whole generated config strictly, and both headers of a grant reach its server [B6 R1 R3 R38 R39]", async () => {
    const tools = await officeTools();
    const front = await headerLog(tools.url);
    const model = await modelThatSays([mcp("gdpval-tools_1", "finish", FINISH)], [say("done")]);
    const grant = httpGrant("gdpval-tools_1", front.url, { ...tokenOf(tools), "X-Second": 'a "b" \\c' });
    const fields: Partial<SessionActivationInput> = {
      model: { base_url: model.captureBaseUrl, name: "stand-in" },
      instructions: "be brief",
      codex: { reasoning_effort: "low", model_context_window: 100_000, model_auto_compact_token_limit: 90_000, timeout_seconds: 60.5 },
      sandbox: { env: { MY_TOKEN: "x" } },
    };
    const { facts, verdict } = await launch(binary, session(model, [grant], fields, { startupSeconds: 20, toolSeconds: 30 }));
    expect(verdict).toEqual({ kind: "completed" });
    expect(front.headers.length).toBeGreaterThan(2);
    for (const headers of front.headers) expect(headers).toMatchObject({ "x-second": 'a "b" \\c' });
    expect(tools.calls).toEqual([expect.objectContaining({ session_id: "session-1", tool: "finish", args: FINISH, outcome: "ok" })]);
    expect(facts.toolCalls).toEqual([expect.objectContaining({ tool_name: "finish", server_name: "gdpval-tools_1", status: "completed" })]);
    expect(told(facts)).toContain('output "done"');
    expect(model.log.captureKeys()).toEqual(["r1"]);
    const seen = toolsSeen(model);
    expect(seen.find(({ name }) => name === "mcp__gdpval_tools_1")?.tools?.map(({ name }) => name)).toContain("finish");
    const helpers = ["list_mcp_resources", "list_mcp_resource_templates", "read_mcp_resource"];
    expect(seen.map(({ name }) => name)).toEqual(expect.arrayContaining(helpers));
  });

  it("calls a tool without readOnlyHint instead of cancelling it [B1]", async () => {
    const tools = await officeTools();
    const model = await modelThatSays([mcp("office", "finish", FINISH)]);
    const { facts } = await launch(binary, session(model, [httpGrant("office", tools.url, tokenOf(tools))]));
    expect(tools.calls).toHaveLength(1);
    expect(facts.toolsCalled).toEqual({ finish: 1 });
  });

  it("offers no MCP tool or helper in a session without grants [R34]", async () => {
    const model = await modelThatSays([say("hello")]);
    const { verdict, facts, threadFiles } = await launch(binary, session(model, []));
    expect(verdict).toEqual({ kind: "completed" });
    expect(toolsSeen(model).filter(({ name }) => /mcp|goal|agent/.test(name))).toEqual([]);
    expect(toolsSeen(model).map(({ name }) => name)).toContain("exec_command");
    const transcripts = await glob(`**/rollout-*-${facts.threadId}.jsonl`, { cwd: threadFiles });
    expect(transcripts).toHaveLength(1);
  });

  it("ignores a task's own .codex/config.toml: the foreign server gets nothing [B14]", async () => {
    const tools = await officeTools();
    const foreign = await startBrokenServer("status");
    onTestFinished(() => foreign.close());
    const model = await modelThatSays([mcp("office", "finish", FINISH)]);
    const files = { ".codex/config.toml": `[mcp_servers.office]\nurl = "${foreign.url}"\n\n[mcp_servers.more]\nurl = "${foreign.url}"\n` };
    const { verdict } = await launch(binary, session(model, [httpGrant("office", tools.url, tokenOf(tools))]), files);
    expect(verdict).toEqual({ kind: "completed" });
    expect(foreign.requests()).toBe(0);
    expect(tools.calls).toHaveLength(1);
  });

  it("hides the model key, CODEX_HOME and secrets by name from commands, but not what the task was given", async () => {
    const model = await modelThatSays([shell("env")], [say("done")]);
    const env = { TASK_TOKEN: { value: "for-the-task", secret: true }, PLAIN: "plain" };
    const { facts } = await launch(binary, session(model, [], { sandbox: { env } }));
    const output = told(facts).join("\n");
    for (const visible of ["TASK_TOKEN=for-the-task", "PLAIN=plain", "PATH=", "HOME="]) expect(output).toContain(visible);
    for (const hidden of ["FAKE-KEY", "OPENAI", "CODEX_HOME="]) expect(output).not.toContain(hidden);
  });

  it("hands instructions to the model to the character, and the prompt to the byte [B8 A2]", async () => {
    const model = await modelThatSays([say("done")]);
    const instructions = "F:\\new\\tmp \"\"\" ''' a\rb\r\nc\td\n\n😀 trailing\\";
    const prompt = `-- --help\r\n\0 价 ${"x".repeat(200 * 1024)}\n\n`;
    const { verdict } = await launch(binary, session(model, [], { instructions, input: prompt }));
    expect(verdict).toEqual({ kind: "completed" });
    const texts = (model.log.requests()[0]?.request?.body.input ?? []).flatMap((item) => {
      const content = (item as { content?: { text?: string }[] }).content;
      return content?.map(({ text }) => text) ?? [];
    });
    expect(texts).toContain(instructions);
    expect(texts).toContain(prompt);
  });

  it("starts a stdio server with the grant's arguments, environment and directory, and nothing of its own secrets", async () => {
    const model = await modelThatSays([mcp("local", "started_with")]);
    const script = fileURLToPath(new URL("../fixtures/codex/stdio-server.mjs", import.meta.url));
    const connection = { command: process.execPath, args: [script, "--flag", 'b "c"'], env: { GIVEN: "F:\\x" }, cwd: "/" };
    const { facts } = await launch(binary, session(model, [stdioGrant("local", connection)]));
    const output = facts.items.find((item) => item.type === "function_call_output")?.output ?? "";
    expect(JSON.parse(output)).toMatchObject({ args: ["--flag", 'b "c"'], env: { GIVEN: "F:\\x" }, cwd: "/" });
    expect(output).not.toContain("FAKE-KEY");
  });

  it("ends a slow call after tool_timeout_sec [R29 R40]", async () => {
    const tools = await officeTools({ delayMs: () => 3_000, replies: "sse" });
    const model = await modelThatSays([mcp("office", "finish", FINISH)]);
    const { facts } = await launch(binary, session(model, [httpGrant("office", tools.url, tokenOf(tools))], {}, { toolSeconds: 1 }));
    expect(facts.toolCalls).toEqual([expect.objectContaining({ tool_name: "finish", status: "timeout", error_type: "timeout" })]);
  });

  it.each([
    ["refuses", "mcp_server_unreachable"],
    ["close", "mcp_server_unreachable"],
    ["status", "mcp_server_auth"],
    ["html", "mcp_server_protocol"],
    ["jsonrpc_error", "mcp_server_protocol"],
    ["hang", "mcp_startup_timeout"],
  ] as const)("never calls the model when a required server fails: %s is told as %s [R8 R9 R52]", async (kind, cause) => {
    const broken = await startBrokenServer(kind);
    onTestFinished(() => broken.close());
    const model = await modelThatSays([say("without my tools")]);
    // With an Authorization header 0.144.4 does not look for OAuth first, which a hanging server would draw out to 42 s.
    const grant = httpGrant("office", broken.url, { Authorization: "Bearer FAKE" });
    const { facts, verdict, stderr } = await launch(binary, session(model, [grant], {}, { startupSeconds: 2 }));
    expect(verdict).toMatchObject({ kind: "startup_failed", error: "Codex exited with code 1 before a turn started" });
    expect(startupCause(stderr, ["office"], binary.profile)).toEqual({ cause_code: cause, servers: [{ name: "office", cause }] });
    expect(facts.items).toEqual([]);
    expect(model.log.total).toBe(0);
  });

  it("goes on without an optional server that refuses [R37]", async () => {
    const broken = await startBrokenServer("refuses");
    const model = await modelThatSays([say("without it")]);
    const { verdict } = await launch(binary, session(model, [httpGrant("office", broken.url, {}, false)]));
    expect(verdict).toEqual({ kind: "completed" });
    expect(model.log.total).toBe(1);
  });

  it("runs two names that are equal once folded, and one of 60 characters [B4]", async () => {
    const tools = await officeTools();
    const model = await modelThatSays([say("hello")]);
    const names = ["a-b", "a_b", "n".repeat(60)];
    const { verdict } = await launch(
      binary,
      session(
        model,
        names.map((name) => httpGrant(name, tools.url, tokenOf(tools))),
      ),
    );
    expect(verdict).toEqual({ kind: "completed" });
    const seen = toolsSeen(model).filter(({ name }) => name.startsWith("mcp__"));
    // What the gap mcp_tool_names_altered stands for: a hash in the namespace, or in place of the tool's name.
    expect(seen.map(({ name }) => name)).toEqual([
      expect.stringMatching(/^mcp__a_b_[0-9a-f]{12}$/),
      expect.stringMatching(/^mcp__a_b_[0-9a-f]{12}$/),
      expect.stringMatching(/^mcp__n{44,60}$/),
    ]);
    expect(seen[2]?.tools?.some(({ name }) => name === "finish")).toBe(binary.version !== "0.144.4");
  });
});
