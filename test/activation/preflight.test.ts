// SPDX-License-Identifier: Apache-2.0
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startModelServer, type ModelServer } from "../../examples/stand-ins/model-server.ts";
import type { BrokenServerOptions } from "../../examples/stand-ins/broken-server.ts";
import { startBrokenServer, startOfficeTools, type OfficeTools } from "../../examples/stand-ins/office-tools.ts";
import { mcp, say, scriptLine, step, type Step } from "../../examples/stand-ins/script.ts";
import { toolGrantSchema, type ToolGrant } from "../../src/contract/grant.ts";
import { resultSchema, type ActivationResult } from "../../src/contract/result.ts";
import { grantedAfter, isChecked } from "../../src/activation/preflight.ts";
import { StageFailure } from "../../src/activation/stage-failure.ts";
import type { ServerCheck } from "../../src/preflight/finding.ts";
import { buildSecretSet, emptySecretSet, type SecretSet } from "../../src/redact/index.ts";
import { freePort, startSmallServer } from "../preflight/tool-servers.ts";
import { attemptRunner, codexVersions, TEST_KEY, type AttemptRunner } from "../support/attempt.ts";
import { commandLinesHolding, filesHolding } from "../support/byte-search.ts";
import { suiteDir } from "../support/suite-dir.ts";
import { profileFor } from "../../src/codex/profile.ts";

/** Holds what is escaped in JSON, in URLs and on command lines. */
const TOKEN = 'tok-"pe%lican\\ 4711-abcdef';
/** Long enough to be of it; each is the same in JSON and in text. */
const PIECES = ["lican", "4711-abcdef"];
const STDIO_SERVER = readFileSync(new URL("../preflight/stdio-server.mjs", import.meta.url), "utf8");

const versions = await codexVersions();
const dir = suiteDir();
const closing: { close(): Promise<void> }[] = [];
let model: ModelServer;
let office: OfficeTools;

beforeAll(async () => {
  [model, office] = [await startModelServer({ apiKey: TEST_KEY }), await startOfficeTools()];
  closing.push(model, office);
});
afterAll(() => Promise.all(closing.map((server) => server.close())));

function activation(id: string, tool_grants: unknown[], more: Record<string, unknown> = {}, steps: Step[] = [step(say("ok"))]) {
  return {
    task_id: { taskset: "t", task_id: id },
    input: `Do the work.\n${scriptLine({ steps })}`,
    model: { name: "stand-in", base_url: model.captureBaseUrl },
    codex: { mcp_startup_timeout_seconds: 2 },
    max_attempts: 1,
    tool_grants,
    ...more,
  };
}

function grant(name: string, url: string, more: Record<string, unknown> = {}): Record<string, unknown> {
  const connection = { transport: "streamable_http", url, headers: { "X-NeMo-Gym-Session-Token": TOKEN } };
  return { type: "mcp", name, required: false, connection, ...more };
}

async function broken(kind: Parameters<typeof startBrokenServer>[0], options: BrokenServerOptions = {}): Promise<string> {
  const server = await startBrokenServer(kind, options);
  closing.push(server);
  return server.url;
}

async function small(...args: Parameters<typeof startSmallServer>): Promise<Awaited<ReturnType<typeof startSmallServer>>> {
  const server = await startSmallServer(...args);
  closing.push(server);
  return server;
}

function gaps(result: ActivationResult | null, code: string): Record<string, unknown>[] {
  const found = result?.observations.gaps.filter((gap) => gap.code === code) ?? [];
  return found.map(({ detail = "{}" }) => JSON.parse(detail) as Record<string, unknown>);
}

function codes(result: ActivationResult | null): string[] {
  return result?.observations.gaps.map(({ code }) => code) ?? [];
}

describe("which servers are looked at before Codex starts", () => {
  const made = (fields: Record<string, unknown>): ToolGrant => toolGrantSchema.parse(grant("x", "http://127.0.0.1:1/mcp", fields));
  it.each<[fields: Record<string, unknown>, checked: boolean]>([
    [{ required: false }, true],
    [{ required: true }, false],
    [{ required: false, preflight: false }, false],
    [{ required: true, preflight: true }, true],
    [{ required: true, expected_tools: ["finish"] }, true],
    [{ required: true, expected_tools: [] }, false],
    [{ required: true, expected_tools: ["finish"], preflight: false }, false],
    [{ required: false, name: "not usable" }, false],
  ])("a grant with %j: %s", (fields, checked) => expect(isChecked(made(fields))).toBe(checked));
});

describe("what is told of servers that are not usable", () => {
  const secrets = buildSecretSet([{ name: "X-NeMo-Gym-Session-Token", value: TOKEN }]);
  const said = (what: string, text: string): ServerCheck => ({
    finding: { phase: "initialize", case: "protocol", what, said: { text, endsAtCut: true } },
  });
  const told = (required: boolean, check: ServerCheck, set: SecretSet = secrets): string => {
    const grants = ["one", "two"].map((name) => toolGrantSchema.parse(grant(name, "http://127.0.0.1:1/mcp", { required })));
    const checks = new Map(grants.map(({ name }) => [name, check]));
    try {
      return JSON.stringify(grantedAfter(grants, checks, profileFor("0.171.0"), set).gaps);
    } catch (error) {
      if (!(error instanceof StageFailure)) throw error;
      return JSON.stringify([error.failure, error.gaps, error.message]);
    }
  };

  it.each([true, false])("holds no piece of a token that the server repeats, whole or cut off; required: %s", (required) => {
    for (const check of [
      said("redirects to /" + TOKEN, `a ${TOKEN} b\n${"x".repeat(5_000)} ${TOKEN}`),
      said("says", `x ${TOKEN.slice(0, 9)}`),
    ]) {
      expect(told(required, check, emptySecretSet)).toContain("tok-");
      expect(told(required, check)).not.toContain("tok-");
      expect(told(required, check)).not.toContain("4711");
    }
  });

  it("fits the failure's reason, however many servers there are and whatever they say", () => {
    const grants = Array.from({ length: 30 }, (_, n) =>
      toolGrantSchema.parse(grant(`server-${n}`, "http://127.0.0.1:1/mcp", { required: true })),
    );
    const checks = new Map(grants.map(({ name }) => [name, said("what ".repeat(500), "words ".repeat(5_000))]));
    try {
      grantedAfter(grants, checks, profileFor("0.171.0"), secrets);
      expect.unreachable();
    } catch (error) {
      if (!(error instanceof StageFailure)) throw error;
      expect(error.failure.server_names).toHaveLength(30);
      expect(error.gaps).toHaveLength(30);
      expect(error.failure.failure_reason.length).toBeLessThanOrEqual(2_000);
      expect(error.failure.failure_reason).toContain("server-29 (initialize, protocol)");
    }
  });
});

describe.each(versions)("servers that are looked at before Codex $name starts", ({ name: version, codex }) => {
  let runner: AttemptRunner;
  const at = (id: string): string => `${id}-${version.replaceAll(".", "_")}`;
  beforeAll(async () => {
    runner = await attemptRunner(`${dir}/${version}`, codex);
  });

  it("the unusable optional ones are left out and each is told, so that they delay no first turn [R37 B3]", async () => {
    const id = at("optional");
    const bad: [name: string, url: string, phase: string, kind: string][] = [
      ["down", await broken("refuses"), "connect", "unreachable"],
      ["hanging", await broken("hang"), "initialize", "no_reply"],
      ["unauthorised", await broken("status", { echo: "long" }), "initialize", "refused"],
      ["page", await broken("html", { echo: "json" }), "initialize", "protocol"],
      ["closing", await broken("close"), "connect", "unreachable"],
      ["erring", await broken("jsonrpc_error", { echo: "raw" }), "initialize", "protocol"],
      ["nowhere", "http://no-such-host.invalid/mcp", "connect", "unreachable"],
      ["empty", (await small({ pages: [[]] })).url, "tools/list", "empty_list"],
    ];
    const good = grant("office", office.url, {
      expected_tools: ["finish"],
      connection: { transport: "streamable_http", url: office.url, headers: { "X-NeMo-Gym-Session-Token": office.mintToken(id, null) } },
    });
    const lacking = grant("lacking", office.url, { expected_tools: ["finish", "submit_invoice"] });
    const bound = { codex: { mcp_startup_timeout_seconds: 6 } }; // the good one must answer within it on a busy machine too
    const raw = activation(id, [...bad.map(([name, url]) => grant(name, url)), good, lacking], bound, [
      step(mcp("office", "web_search", { query: "q" })),
      step(say("ok")),
    ]);
    const { result, read } = await runner.outcome(raw);
    expect(result?.status).toBe("completed");
    expect(resultSchema.parse(result)).toEqual(result);
    expect(result?.evidence?.tools_called).toEqual({ web_search: 1 });
    expect(gaps(result, "mcp_server_unavailable").map(({ server_name, phase, case: kind }) => [server_name, phase, kind])).toEqual([
      ...bad.map(([name, , phase, kind]) => [name, phase, kind]),
      ["lacking", "tools/list", "tool_missing"],
    ]);
    expect(codes(result)).not.toContain("mcp_server_state_unknown");
    expect(codes(result)).not.toContain("agent_startup_failed");
    const config = await read("config.toml");
    expect(config).toContain("[mcp_servers.office]");
    for (const [name] of bad) expect(config).not.toContain(`mcp_servers.${name}`);
    // Once for all of them together, before and not in the agent's time; Codex alone would wait for longer.
    expect(result?.timing?.setup_ms).toBeGreaterThanOrEqual(6_000);
    expect(result?.timing?.setup_ms).toBeLessThan(40_000);
    expect(result?.timing?.run_ms).toBeLessThan(40_000);
    expectNoToken(result, runner);
  });

  it("a required one that is not usable ends the attempt without any start of Codex, naming every failed one [R9 R20]", async () => {
    const id = at("required");
    const must = { required: true, preflight: true };
    const { result } = await runner.outcome(
      activation(id, [
        grant("hanging", await broken("hang"), must),
        grant("unauthorised", await broken("status", { echo: "json" }), must),
        grant("office", office.url, { required: true, expected_tools: ["finish", "submit_invoice"] }),
        grant("extra", await broken("html")),
      ]),
    );
    const reason = result?.failure?.failure_reason ?? "";
    expect(result).toMatchObject({
      status: "failed",
      cause_class: "grant",
      evidence: null,
      failure: {
        failure_kind: "agent_run_error",
        cause_code: "mcp_server_auth",
        server_names: ["hanging", "unauthorised", "office"],
        stage: "agent",
        terminal: true,
        status_code: 502,
      },
    });
    for (const told of ["hanging (initialize, no_reply)", "unauthorised (initialize, refused)", "HTTP 401", '"submit_invoice"']) {
      expect(reason).toContain(told);
    }
    expect(result?.observations.gaps.filter(({ code }) => code === "agent_startup_failed")).toEqual([
      { code: "agent_startup_failed", invocation_id: id, detail: reason },
    ]);
    expect(gaps(result, "mcp_server_unavailable").map(({ server_name }) => server_name)).toEqual([
      "hanging",
      "unauthorised",
      "office",
      "extra",
    ]);
    expect(codes(result)).not.toContain("harness_not_run");
    expect(resultSchema.parse(result)).toEqual(result);
    expect(model.log.countOf(id)).toBe(0);
    expect(readdirSync(join(runner.store, `act-run1-${id}`, "attempt-0"))).toEqual(["attempt.json"]); // no events, no stderr
    expectNoToken(result, runner);
  });

  it.each<[kind: string, cause: string, terminal: boolean]>([
    ["refuses", "mcp_server_unreachable", false],
    ["hang", "mcp_startup_timeout", false],
    ["html", "mcp_server_protocol", false],
    ["status", "mcp_server_auth", true],
    ["empty", "mcp_tools_missing", false],
  ])("a required one that %s is told by the cause that Codex's own words would have", async (kind, cause, terminal) => {
    const id = at(`cause-${kind}`);
    const url = kind === "empty" ? (await small({ pages: [[]] })).url : await broken(kind as Parameters<typeof broken>[0]);
    const { attempt } = await runner.outcome(activation(id, [grant("only", url, { required: true, preflight: true })]));
    expect(attempt.failure).toMatchObject({ cause_code: cause, terminal, server_names: ["only"] });
    expect(model.log.countOf(id)).toBe(0);
  });

  it("one that comes up late is waited for [B12]", async () => {
    const id = at("late");
    const port = await freePort();
    const late = grant("late", `http://127.0.0.1:${port}/mcp`, { required: true, preflight: true });
    const running = runner.outcome(activation(id, [late], { codex: { mcp_startup_timeout_seconds: 20 } }));
    setTimeout(() => void small({ port }), 2_500);
    const { result } = await running;
    expect(result?.status).toBe("completed");
    expect(codes(result)).not.toContain("mcp_server_unavailable");
    expect(model.log.countOf(id)).toBe(1);
  });

  it("one whose tools get other names works, and that is told", async () => {
    const id = at("names");
    const { url } = await small({ pages: [["files.read", "twice", "twice", "ok"]] });
    const { result } = await runner.outcome(activation(id, [grant("files", url)]));
    expect(result?.status).toBe("completed");
    expect(gaps(result, "mcp_tool_names_altered")).toEqual([{ server_name: "files", tools: ["files.read", "twice"], count: 2 }]);
    const namespace = model.log
      .requests(id)
      .at(-1)
      ?.request?.body.tools.find((tool) => tool["name"] === "mcp__files");
    expect(namespace?.["tools"]).toEqual(["files_read", "ok", "twice"].map((name) => expect.objectContaining({ name }) as unknown));
  });

  it("programs are asked inside the sandbox, in the environment that Codex gives them, and none is left", async () => {
    const id = at("stdio");
    const marker = `only-of-${id}`;
    const program = (mode: string, more: Record<string, unknown> = {}): Record<string, unknown> => ({
      type: "mcp",
      name: mode,
      required: false,
      connection: { transport: "stdio", command: "node", args: ["server.mjs", mode, marker], env: { SERVER_TOKEN: TOKEN } },
      ...more,
    });
    const { result, read } = await runner.outcome(
      activation(
        id,
        [
          program("works", { expected_tools: ["note"] }),
          program("noisy"),
          program("exits"),
          program("silent"),
          program("missing", { connection: { transport: "stdio", command: "/no/such/program" } }),
        ],
        { sandbox: { files: [{ path: "server.mjs", content: STDIO_SERVER }] }, outputs: { paths: ["starts.txt"] } },
      ),
    );
    expect(result?.status).toBe("completed");
    const unavailable = gaps(result, "mcp_server_unavailable");
    expect(unavailable.map(({ server_name, phase, case: kind }) => [server_name, phase, kind])).toEqual([
      ["exits", "initialize", "unreachable"],
      ["silent", "initialize", "no_reply"],
      ["missing", "connect", "unreachable"],
    ]);
    expect(unavailable[0]?.["reason"]).toBe("its program ended (exit code 3) instead of answering: cannot log in with [redacted]");
    const starts = await read(result?.artifacts.find(({ path }) => path.endsWith("starts.txt"))?.path ?? "none");
    const lines = starts.trim().split("\n");
    expect(lines.slice(0, 4).map((line) => line.split(" ")[0])).toEqual(["works", "noisy", "exits", "silent"]);
    const ofCodex = lines.slice(4);
    expect(ofCodex).toHaveLength(2);
    expect(ofCodex.some((line) => line.startsWith("noisy"))).toBe(true);
    expect(ofCodex.find((line) => line.startsWith("works"))).toBe(lines[0]?.replace("PWD,", "")); // bubblewrap adds it
    expect(commandLinesHolding(marker)).toEqual([]);
    expectNoToken(result, runner);
  });

  it("a stop during the look ends it at once", async () => {
    const id = at("stopped");
    const hanging = grant("hanging", await broken("hang"));
    const controller = new AbortController();
    const running = runner.outcome(activation(id, [hanging], { codex: { mcp_startup_timeout_seconds: 50 } }), {
      signal: controller.signal,
    });
    setTimeout(() => controller.abort({ kind: "cancelled", mark: { by: "a test", at: new Date().toISOString(), reason: "" } }), 1_000);
    const { result } = await running;
    expect(result).toMatchObject({ status: "cancelled", failure: { failure_kind: "cancelled" } });
    expect(codes(result)).toEqual(["agent_activation_interrupted"]);
    expect(model.log.countOf(id)).toBe(0);
  });
});

it("the searches for the token find it in each place where nobody knows that it is a secret", async () => {
  const runner = await attemptRunner(`${dir}/control`, versions[0]!.codex);
  const connection = { transport: "streamable_http", url: await broken("status", { message: TOKEN }) };
  const { result } = await runner.outcome(activation("control", [grant("teller", "", { required: true, preflight: true, connection })]));
  for (const piece of PIECES)
    expect(placesOf(piece, result, runner)).toEqual([
      "result",
      "log",
      "act-run1-control/attempt-0/attempt.json",
      "act-run1-control/result.json",
    ]);
});

function placesOf(piece: string, result: ActivationResult | null, runner: AttemptRunner): string[] {
  return [
    ...(JSON.stringify(result).includes(piece) ? ["result"] : []),
    ...(runner.logLines.join("").includes(piece) ? ["log"] : []),
    ...filesHolding(runner.store, piece),
  ];
}

function expectNoToken(result: ActivationResult | null, runner: AttemptRunner): void {
  for (const piece of PIECES) expect(placesOf(piece, result, runner)).toEqual([]);
}
