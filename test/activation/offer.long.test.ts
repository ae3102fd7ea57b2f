// SPDX-License-Identifier: Apache-2.0
import { execFileSync } from "node:child_process";
import type { ServerResponse } from "node:http";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ModelRequest } from "../../examples/stand-ins/model-request.ts";
import { startModelServer, type ModelServer } from "../../examples/stand-ins/model-server.ts";
import { startOfficeTools, type OfficeTools } from "../../examples/stand-ins/office-tools.ts";
import { mcp, say, scriptLine, shell, step, type Item, type Script, type Step } from "../../examples/stand-ins/script.ts";
import { answeredCalls, readTranscript } from "../../src/codex/transcript.ts";
import { FREE_FEATURES, PROTECTED_KEYS } from "../../src/contract/rules/extra-config.ts";
import { once } from "../codex/recordings.ts";
import { startSmallServer, type SmallServerOptions } from "../preflight/tool-servers.ts";
import { attemptRunner, codexVersions, TEST_KEY, type AttemptRunner } from "../support/attempt.ts";
import { suiteDir } from "../support/suite-dir.ts";

const versions = await codexVersions();
const dir = suiteDir();
const closing: { close(): Promise<void> }[] = [];
afterAll(() => Promise.all(closing.map((server) => server.close())));

/** A name of each kind that a version has. */
const kindsOf = (version: string): { kind: string; name: string }[] => [
  { kind: "unknown", name: "stand-in" },
  { kind: "plain with tool search", name: "gpt-5.5" },
  { kind: "code mode", name: version === "0.144.4" ? "gpt-5.6-sol" : "gpt-6.2-sol" },
];

/** Names of all tools in a request, `<namespace>.<name>`; those of code mode stand in the input. */
function offered({ body }: Pick<ModelRequest, "body">): string[] {
  type Tool = { type: string; name?: string; tools?: Tool[] };
  const added = body.input.filter((item) => item["type"] === "additional_tools").flatMap((item) => item["tools"] as Tool[]);
  return [...(body.tools as unknown as Tool[]), ...added].flatMap(({ type, name = type, tools }) =>
    tools === undefined ? [name] : tools.map((tool) => `${name}.${tool.name}`),
  );
}

function answer(response: ServerResponse, id: number | string | undefined, result: object): void {
  response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ jsonrpc: "2.0", id, result }));
}

/** Whose calls succeed. */
const MAIL: SmallServerOptions = {
  pages: [["send"]],
  instead: ({ id, method }, _request, response) => {
    if (method === "tools/call") answer(response, id, { content: [{ type: "text", text: "sent" }] });
    return method === "tools/call";
  },
};

const call = (namespace: string, name: string, args: Record<string, string | number>): Item => ({ call: { namespace, name, args } });
const spawn = (namespace: string): Item =>
  call(namespace, "spawn_agent", { message: "Do a part of it.", ...(namespace === "collaboration" ? { task_name: "part" } : {}) });

describe.each(versions)("what real Codex $name offers", ({ codex }) => {
  let model: ModelServer;
  let office: OfficeTools;
  let runner: AttemptRunner;
  let scriptFor: ((request: ModelRequest) => Script | undefined) | undefined;
  let runs = 0;

  beforeAll(async () => {
    model = await startModelServer({ apiKey: TEST_KEY, scriptFor: (request) => scriptFor?.(request) });
    office = await startOfficeTools();
    closing.push(model, office);
    runner = await attemptRunner(join(dir, codex.version), codex);
  });

  const grant = (name: string, url: string, required = true): Record<string, unknown> => ({
    type: "mcp",
    name,
    required,
    connection: { transport: "streamable_http", url, headers: { "X-NeMo-Gym-Session-Token": office.mintToken("s1") } },
  });

  async function small(options: SmallServerOptions): Promise<string> {
    const server = await startSmallServer(options);
    closing.push(server);
    return server.url;
  }

  /** One session; its requests, oldest first. */
  async function session(name: string, steps: Step[], more: Record<string, unknown> = {}) {
    const id = `t${++runs}`;
    const { codex: options = {}, ...others } = more;
    const outcome = await runner.outcome({
      task_id: { taskset: "t", task_id: id },
      input: `Do the work.\n${scriptLine({ steps })}`,
      model: { name, base_url: model.captureBaseUrl },
      codex: { timeout_seconds: 90, ...(options as object) },
      max_attempts: 1,
      ...others,
    });
    const requests = model.log.requests(id).flatMap(({ request }) => (request === null ? [] : [request]));
    return { ...outcome, requests, posts: model.log.countOf(id), first: requests[0] === undefined ? [] : offered(requests[0]) };
  }

  const threads = (requests: readonly ModelRequest[]): number => new Set(requests.map(({ headers }) => headers["thread-id"])).size;
  const outputsOf = ({ body }: ModelRequest): string[] =>
    body.input.filter((item) => item["type"] === "function_call_output").map((item) => JSON.stringify(item["output"]));

  it.each(kindsOf(codex.version))(
    "a model ($kind): both grants by name, and a hand-in that is seen; no agent, no sleep, no call that is not counted",
    async ({ kind, name }) => {
      const { result, read, requests, posts, first } = await session(
        name,
        [
          step(mcp("mail-box", "send")),
          step(mcp("office", "finish", { reason: "done", paths: ["report.txt"] })),
          step(spawn("collaboration")),
          step(spawn("multi_agent_v1")),
          step(call("clock", "sleep", { duration_ms: 3_600_000 })),
          step(say("done")),
        ],
        {
          tool_grants: [grant("office", office.url), grant("mail-box", await small(MAIL), false)],
          required_tools: ["finish"],
          sandbox: { files: [{ path: "report.txt", content: "All is well." }] },
        },
      );
      expect(result).toMatchObject({ status: "completed", failure: null });
      expect(first).toEqual(expect.arrayContaining(["mcp__office.finish", "mcp__mail_box.send"]));
      expect(first.filter((tool) => /search$|sleep/.test(tool) && !tool.startsWith("mcp__"))).toEqual([]);
      // 0.144.4 cannot take these from a model whose catalogue names them; there they cannot work.
      const isOffered = codex.version === "0.144.4" && kind === "code mode";
      expect(first.includes("collaboration.spawn_agent")).toBe(isOffered);

      expect(result?.evidence?.tools_called).toMatchObject({ send: 1, finish: 1 });
      expect(result?.artifacts.filter((artifact) => artifact.kind !== "evidence").map(({ path }) => path)).toEqual([
        expect.stringMatching(/report\.txt$/),
      ]);
      const answers = outputsOf(requests.at(-1)!);
      expect(answers).toHaveLength(5);
      expect(answers[2]).toMatch(isOffered ? /agent thread limit reached/ : /unsupported call/);
      expect(answers[3]).toMatch(/unsupported call/);
      expect(answers[4]).toMatch(/unsupported call/);
      expect(threads(requests)).toBe(1);
      expect(posts).toBe(6);
      expect(answeredCalls(await readTranscript(once(await read("transcript.jsonl"))))).toBe(posts);
      expect(await read("events.jsonl")).not.toMatch(/deprecated/);
    },
  );

  it.each(kindsOf(codex.version))("a model ($kind) that may have agents: one that works, with the grants", async ({ kind, name }) => {
    const namespace = kind === "code mode" ? "collaboration" : "multi_agent_v1";
    const isChild = ({ headers }: ModelRequest): boolean => headers["x-openai-subagent"] !== undefined;
    let seen: ModelRequest | null = null;
    const always = (item: Item): Script => ({ steps: Array.from({ length: 200 }, () => step(item)) });
    scriptFor = (request) => {
      if (isChild(request)) {
        seen = request;
        return always(say("The part is done."));
      }
      if (seen !== null) return always(say("done"));
      if (request.step === 0) return always(spawn(namespace));
      return always(kind === "code mode" ? call(namespace, "wait_agent", { timeout_ms: 10_000 }) : shell("sleep 0.2"));
    };
    try {
      const { result, requests, first } = await session(name, [], {
        codex: { subagents: "on" },
        tool_grants: [grant("office", office.url)],
      });
      expect(result).toMatchObject({ status: "completed", failure: null });
      expect(first).toContain(`${namespace}.spawn_agent`);
      expect(threads(requests)).toBe(2);
      expect(offered(seen!)).toContain("mcp__office.finish");
    } finally {
      scriptFor = undefined;
    }
  });

  it("models as their catalogue has it, when that is asked for", async () => {
    const [, search, code] = kindsOf(codex.version);
    const more = { codex: { tools: "catalogue" }, tool_grants: [grant("office", office.url)] };
    const bySearch = await session(search!.name, [step(say("done"))], more);
    expect(bySearch.first).toContain("tool_search");
    const byCode = await session(code!.name, [step(say("done"))], more);
    expect(byCode.first.join()).toMatch(/exec\b/);
    for (const { first } of [bySearch, byCode]) expect(first.filter((tool) => tool.startsWith("mcp__"))).toEqual([]);
  });

  it("of servers whose names it alters: the same tools to every kind", async () => {
    const url = await small({ pages: [["a", "t".repeat(20), "u".repeat(60)]] });
    const names = ["a-b", "a_b", "mcp__x", "x", "n".repeat(45), "m".repeat(109)];
    const tool_grants = names.map((name) => grant(name, url));
    const [unknown, ...known] = kindsOf(codex.version);
    const asUnknown = await session(unknown!.name, [step(say("done"))], { tool_grants });
    const wanted = asUnknown.first.filter((tool) => tool.startsWith("mcp__"));
    expect(wanted).toHaveLength(3 * names.length);
    for (const { name } of known) {
      const { first } = await session(name, [step(say("done"))], { tool_grants });
      expect(first.filter((tool) => tool.startsWith("mcp__"))).toEqual(wanted);
      expect(first).not.toContain("tool_search");
    }
  });

  it.each(["initialize", "tools/list"])("an optional server that takes its time at %s is waited for", async (slow) => {
    const url = await small({
      instead: (message, _request, response) => {
        if (message.method !== slow) return false;
        const result =
          slow === "initialize"
            ? { protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo: { name: "slow", version: "1" } }
            : { tools: [{ name: "send", inputSchema: { type: "object", properties: {} } }] };
        setTimeout(() => answer(response, message.id, result), 4_000);
        return true;
      },
      pages: [["send"]],
    });
    const { result, first } = await session("stand-in", [step(say("done"))], { tool_grants: [grant("mail", url, false)] });
    expect(result).toMatchObject({ status: "completed", failure: null });
    expect(first).toContain("mcp__mail.send");
  });

  it("an optional server that is gone after it was looked at ends no session", async () => {
    let looks = 0;
    const url = await small({
      instead: (message, request) => {
        if (message.method === "initialize") looks++;
        if (looks > 1) request.socket.destroy();
        return looks > 1;
      },
    });
    const { result, first } = await session("stand-in", [step(say("done"))], { tool_grants: [grant("mail", url, false)] });
    expect(looks).toBeGreaterThan(1);
    expect(result).toMatchObject({ status: "completed", failure: null });
    expect(first.filter((tool) => tool.startsWith("mcp__"))).toEqual([]);
    expect(result?.observations.gaps.find(({ code }) => code === "mcp_server_unavailable")?.detail).toContain('"server_name":"mail"');
  });

  it("the instructions in the workdir, or says that it does not", async () => {
    const files = [
      { path: "AGENTS.md", content: "Answer in prose." },
      { path: "AGENTS.override.md", content: "Answer in rhymes." },
    ];
    const { result, requests } = await session("stand-in", [step(say("done"))], { sandbox: { files } });
    const isRead = codex.version === "0.144.4";
    expect(JSON.stringify(requests[0]?.body).includes("Answer in rhymes.")).toBe(isRead);
    const gaps = result?.observations.gaps.filter(({ code }) => code === "project_instructions_ignored");
    expect(gaps).toEqual(isRead ? [] : [{ code: "project_instructions_ignored", detail: '{"path":"AGENTS.override.md"}' }]);
  });

  it("an effort as it is written", async () => {
    const [, plain, code] = kindsOf(codex.version);
    for (const [{ name }, reasoning_effort] of [[plain!, "none"] as const, [code!, "max"] as const]) {
      const { requests } = await session(name, [step(say("done"))], { codex: { reasoning_effort } });
      expect(requests[0]?.body["reasoning"]).toMatchObject({ effort: reasoning_effort });
    }
  });
});

it("features that may be set, and those that may not, are Codex's own names", () => {
  const known = versions.flatMap(({ codex: { hostDir, entry } }) => {
    const list = execFileSync(join(hostDir, entry), ["features", "list"], {
      encoding: "utf8",
      env: { CODEX_HOME: dir, PATH: "" },
      stdio: "pipe",
    });
    return list.split("\n").map((line) => line.split(" ")[0]);
  });
  const refused = Object.keys(PROTECTED_KEYS).flatMap((key) => (key.startsWith("features.") ? [key.slice("features.".length)] : []));
  for (const name of [...FREE_FEATURES, ...refused]) expect(known).toContain(name);
});
