// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { mcpServerEntry } from "../../src/codex/mcp-servers.ts";
import type { McpGrant } from "../../src/contract/grant.ts";
import { isRetryable, retryAfterMs, type CallFault } from "../../src/resources/call-failure.ts";
import { afterSetCookie, cookieHeader } from "../../src/resources/cookies.ts";
import { afterActivation, afterFailure, nextAttempt, resourcesFailure, whileUnreachable } from "../../src/resources/decide.ts";
import { grantOf } from "../../src/resources/grants.ts";
import type { RolloutRecord } from "../../src/resources/record.ts";
import { responseFor } from "../../src/resources/response-for.ts";
import { resourcesUrl, type ResourcesServer } from "../../src/resources/server.ts";
import { verdictOf } from "../../src/resources/verification.ts";
import { resourcesSessionId, seedBody, verifyBody } from "../../src/resources/wire.ts";
import { attemptOf, resultOf } from "../support/result-documents.ts";
import { LIMITS } from "./rig.ts";

const SERVER: ResourcesServer = { url: "http://10.0.0.7:8000/gdpval", name: "resources", protocol: "session", mcp: true };
const TOOLS = { server_name: "gdpval-tools_1", url_path: "mcp", transport: "http", headers: { "X-NeMo-Gym-Session-Token": "t" } };

describe("the grant made of a seed's metadata", () => {
  it("makes the same config entry with and without sessions, and nothing of it changes but by a tool time-out [R5 R36 R54]", () => {
    const session = grantOf(SERVER, { resources_tools: TOOLS }) as McpGrant;
    const row = grantOf({ ...SERVER, protocol: "row" }, { mcp: TOOLS }) as McpGrant;
    for (const toolSeconds of [undefined, 120]) {
      const [one, other] = [session, row].map((grant) => mcpServerEntry(grant, { startupSeconds: undefined, toolSeconds }));
      expect(one).toEqual(other);
      expect(other).toEqual({
        url: "http://10.0.0.7:8000/gdpval/mcp",
        http_headers: { "X-NeMo-Gym-Session-Token": "t" },
        required: true,
        ...(toolSeconds === undefined ? {} : { tool_timeout_sec: 120 }),
      });
    }
  });

  it("falls back to the server's own name, and to /mcp", () => {
    const grant = grantOf(SERVER, { resources_tools: { url_path: "/mcp", transport: "http", headers: {} } });
    expect(grant).toMatchObject({ name: "resources", connection: { url: "http://10.0.0.7:8000/gdpval/mcp", headers: {} } });
  });

  it.each<[string, object | null, RegExp]>([
    ["no metadata", null, /names no MCP server/],
    ["another transport", { ...TOOLS, transport: "stdio" }, /transport that is not supported/],
    ["a name that Codex cannot use", { ...TOOLS, server_name: "a.b" }, /cannot use/],
    ["a header that HTTP forbids", { ...TOOLS, headers: { "X-T": "a\nb" } }, /no grant that could be used/],
  ])("is refused for good with %s", (_what, tools, reason) => {
    expect(grantOf(SERVER, { resources_tools: tools as never })).toMatch(reason);
  });

  it("stays at the server whose seed it was, whatever path its metadata name", () => {
    for (const url_path of ["@evil.example/mcp", "//evil.example/mcp", "http://evil.example/mcp", "/../mcp"]) {
      const grant = grantOf(SERVER, { resources_tools: { ...TOOLS, url_path } });
      if (typeof grant !== "string") expect(new URL((grant.connection as { url: string }).url).origin).toBe("http://10.0.0.7:8000");
    }
  });
});

const status = (code: number): CallFault => ({ kind: "status", status: code, retryAfterMs: null, said: "" });

it.each<[string, CallFault[], boolean]>([
  ["statuses of a server that may do better later", [408, 425, 429, 500, 502, 503, 504, 599].map(status), true],
  ["statuses that it would give again", [301, 400, 401, 403, 404, 409, 410, 422].map(status), false],
  [
    "broken connections and time-outs",
    [
      { kind: "unreachable", code: "ECONNREFUSED" },
      { kind: "peer_drop", code: "ECONNRESET" },
      { kind: "timeout", seconds: 1 },
    ],
    true,
  ],
  ["answers that are not what the protocol says", [{ kind: "protocol", what: "x" }], false],
])("%s are retried or not by the rules of Gym's environment servers", (_what, faults, retried) => {
  for (const fault of faults) expect([fault, isRetryable(fault)]).toEqual([fault, retried]);
});

it("a Retry-After is read as seconds or as a date, up to an hour", () => {
  const now = Date.parse("2026-11-30T00:00:00Z");
  expect(retryAfterMs("7", now)).toBe(7_000);
  expect(retryAfterMs("Mon, 30 Nov 2026 00:01:00 GMT", now)).toBe(60_000);
  expect(retryAfterMs("86400", now)).toBe(3_600_000);
  expect(retryAfterMs("Sun, 29 Nov 2026 00:00:00 GMT", now)).toBe(0);
  for (const header of [undefined, "soon", ""]) expect(retryAfterMs(header, now)).toBeNull();
});

it("cookies are kept by name, the last one wins, and one that expires is gone", () => {
  const cookies = afterSetCookie({ a: "1", b: "2" }, ["a=3; Path=/; HttpOnly", "c=x=y", "b=; Max-Age=0", "nonsense", "=v"]);
  expect(cookies).toEqual({ a: "3", c: "x=y" });
  expect(cookieHeader(cookies)).toBe("a=3; c=x=y");
  expect(cookieHeader({})).toBeNull();
});

function recordOf(facts: Partial<RolloutRecord> = {}): RolloutRecord {
  return {
    activation_id: "a",
    run_id: "r",
    task_id: { taskset: "t", task_id: "1" },
    rollout_id: "x",
    nonce: "n",
    server: SERVER,
    content_digest: "",
    row_sha256: "",
    state: "seed",
    attempt: 0,
    generation: 0,
    session_open: true,
    session: null,
    queued: false,
    counted: 0,
    uncounted: 0,
    not_before: 0,
    unreachable_since: null,
    tries: 0,
    next: null,
    failure: null,
    verification_failure: null,
    cancel: null,
    cleanup_error: null,
    ...facts,
  };
}

function failureOf(terminal: boolean) {
  return resourcesFailure({ kind: "verifier_error", cause: "unknown", stage: "seed", reason: "x", terminal, statusCode: 502 });
}

describe("after a failed attempt", () => {
  const failed = (facts: { terminal?: boolean; counted?: boolean; waitMs?: number }) => ({
    failure: failureOf(facts.terminal ?? false),
    counted: facts.counted ?? true,
    waitMs: facts.waitMs ?? null,
  });
  it.each<[string, Partial<RolloutRecord>, Parameters<typeof failed>[0], Partial<RolloutRecord>]>([
    ["another follows", {}, {}, { next: "again", counted: 1, not_before: 1_050 }],
    ["another follows when the server said", {}, { waitMs: 9_000 }, { next: "again", not_before: 10_000 }],
    ["none follows a terminal one", {}, { terminal: true }, { next: "end" }],
    ["none follows the last that counts", { counted: 2 }, {}, { next: "end", counted: 3 }],
    [
      "one follows after many that do not count",
      { counted: 2, uncounted: 50 },
      { counted: false },
      { next: "again", counted: 2, uncounted: 51 },
    ],
    ["none follows after too many of those", { uncounted: 100 }, { counted: false }, { next: "end" }],
  ])("%s, and its session is closed first", (_what, before, facts, expected) => {
    expect(afterFailure(recordOf(before), failed(facts), LIMITS, 50, 1_000)).toMatchObject({
      state: "close",
      session_open: true,
      ...expected,
    });
  });

  it("the next one has a number and, if there was an activation, a generation of its own", () => {
    const closed = { session_open: false, session: null, queued: false, next: null, failure: null, state: "seed" };
    expect(nextAttempt(recordOf({ attempt: 4, generation: 2, queued: true, tries: 2 }))).toMatchObject({
      attempt: 5,
      generation: 3,
      tries: 0,
      ...closed,
    });
    expect(nextAttempt(recordOf({ attempt: 4, generation: 2 }))).toMatchObject({ attempt: 5, generation: 2, ...closed });
  });

  it("a server that cannot be connected to is waited for without counting, for as long as the settings say", () => {
    const fault = { kind: "unreachable" as const, code: "ECONNREFUSED" };
    expect(whileUnreachable(recordOf(), fault, LIMITS, 5_000)).toEqual({ ms: 1_000, record: recordOf({ unreachable_since: 5_000 }) });
    expect(whileUnreachable(recordOf({ unreachable_since: 5_000 }), fault, LIMITS, 25_000)).toMatchObject({ ms: 20_000 });
    expect(whileUnreachable(recordOf({ unreachable_since: 5_000 }), fault, LIMITS, 5_000 + LIMITS.unreachable_ms)).toBeNull();
    expect(whileUnreachable(recordOf(), { kind: "peer_drop", code: "ECONNRESET" }, LIMITS, 0)).toBeNull();
  });
});

describe("after an activation", () => {
  const failed = (kind: "agent_run_error" | "session_lost", terminal: boolean, charged = true) =>
    resultOf("a", {
      status: "failed",
      failure: { ...failureOf(terminal), failure_kind: kind },
      attempts: [attemptOf(3, { charged, failure: failureOf(terminal) })],
    });
  it.each([
    ["one that completed is verified", resultOf("a"), { kind: "verify" }],
    ["one that stopped at a limit is verified", resultOf("a", { status: "incomplete" }), { kind: "verify" }],
    ["one that was cancelled ends", resultOf("a", { status: "cancelled", failure: failureOf(true) }), { kind: "end" }],
    ["one that was refused ends", resultOf("a", { status: "refused", failure: failureOf(true) }), { kind: "end" }],
    ["one that would fail again ends", failed("agent_run_error", true), { kind: "end" }],
    ["one that may do better is tried again", failed("agent_run_error", false), { kind: "failed", counted: true }],
    ["one whose worker was lost is tried again", failed("session_lost", true), { kind: "failed", counted: true }],
    ["one that was handed back is tried again, uncounted", failed("session_lost", true, false), { kind: "failed", counted: false }],
  ])("%s", (_what, result, expected) => {
    expect(afterActivation(result, 3)).toMatchObject(expected);
  });
});

describe("what is sent", () => {
  const row = { task_id: "1", prompt: "p", responses_create_params: { input: [] }, agent_ref: { name: "x" }, _ng_task_index: 3 };
  const names = { session_id: "s", episode_id: { rollout_id: "x", attempt: 1 }, task_id: { taskset: "t", task_id: "1" } };

  it("is the task's own fields under an id, or the whole row", () => {
    expect(seedBody(SERVER, names, row)).toEqual({
      resources_session_id: "s",
      episode_id: names.episode_id,
      task_id: names.task_id,
      task_data: { task_id: "1", prompt: "p" },
    });
    expect(seedBody({ protocol: "row" }, names, row)).toBe(row);
    expect(verifyBody(SERVER, row, { id: "r" })).toEqual({
      task_id: "1",
      prompt: "p",
      responses_create_params: { input: [] },
      response: { id: "r" },
    });
    expect(verifyBody({ protocol: "row" }, row, { id: "r" })).toEqual({ ...row, response: { id: "r" } });
  });

  it("goes to a session id that follows from the attempt, so that a seed sent again is the same", () => {
    const of = { run_id: "r", activation_id: "a", generation: 0, attempt: 0 };
    expect(resourcesSessionId(of)).toBe(resourcesSessionId({ ...of }));
    expect(resourcesSessionId(of)).toMatch(/^resources-session-[0-9a-f]{32}$/);
    const others = [{ run_id: "q" }, { activation_id: "b" }, { generation: 1 }, { attempt: 1 }].map((change) =>
      resourcesSessionId({ ...of, ...change }),
    );
    expect(new Set([resourcesSessionId(of), ...others]).size).toBe(5);
  });

  it("tells a response as it is, and without sessions as Gym's agents tell it: thoughts before their message, and always a message", () => {
    const usage = {
      input_tokens: 5,
      output_tokens: 2,
      total_tokens: 7,
      cached_input_tokens: 3,
      reasoning_output_tokens: null,
      cache_write_input_tokens: 1,
    };
    const thought = (id: string) => ({
      type: "reasoning" as const,
      id,
      summary: [{ type: "summary_text" as const, text: `thought ${id}` }],
    });
    const said = {
      type: "message" as const,
      id: "m",
      role: "assistant" as const,
      status: "completed" as const,
      content: [{ type: "output_text" as const, text: "hi", annotations: [] }],
    };
    const call = { type: "function_call" as const, id: "c", call_id: "c", name: "finish", arguments: "{}", status: "completed" as const };
    const response = (output: object[]) =>
      resultOf("a", {
        response: {
          id: "resp_1",
          object: "response",
          created_at: 1,
          model: "m",
          status: "completed",
          error: null,
          incomplete_details: null,
          output: output as never,
          usage,
          metadata: {},
          parallel_tool_calls: true,
          tool_choice: "auto",
          tools: [],
        },
      });
    const output = (protocol: "session" | "row", items: object[]) =>
      (responseFor(protocol, response(items)) as { output: object[] }).output;
    expect(output("session", [thought("1"), call])).toEqual([thought("1"), call]);
    expect(output("row", [thought("1"), thought("2"), call, said, thought("3")])).toEqual([
      call,
      {
        ...said,
        content: [{ type: "output_text", text: "<think>\nthought 1\n</think>\n\n<think>\nthought 2\n</think>\n\nhi", annotations: [] }],
      },
      expect.objectContaining({ type: "message", content: [expect.objectContaining({ text: "<think>\nthought 3\n</think>\n\n" })] }),
    ]);
    expect(output("row", [call])).toEqual([
      call,
      expect.objectContaining({ type: "message", content: [expect.objectContaining({ text: "" })] }),
    ]);
    expect(responseFor("session", response([]))).toMatchObject({
      usage: {
        input_tokens: 5,
        input_tokens_details: { cached_tokens: 3, cache_write_tokens: 1 },
        output_tokens: 2,
        output_tokens_details: { reasoning_tokens: 0 },
        total_tokens: 7,
      },
    });
    expect(responseFor("session", resultOf("a", { status: "incomplete" }))).toMatchObject({
      status: "incomplete",
      output: [],
      usage: null,
    });
  });
});

it("of a verifier's answer its own fields stand in the result, also large ones, but not all that it sends back", () => {
  const row = { task_id: "1", rubric: "r".repeat(5_000), tags: ["a"] };
  const answer = {
    ...row,
    tags: ["b"],
    responses_create_params: {},
    response: {},
    reward: 0.5,
    win: true,
    judge_response: "j".repeat(5_000),
  };
  expect(verdictOf(answer, row)).toEqual({
    reward: 0.5,
    fields: { tags: ["b"], win: true, judge_response: answer.judge_response },
    cut: false,
  });
  const huge = { ...answer, judge_response: "j".repeat(100_000) };
  expect(verdictOf(huge, row)).toEqual({ reward: 0.5, fields: { tags: ["b"], win: true }, cut: true });
});

it("an address that is kept and shown in clear may hold nothing that could be a secret", () => {
  expect(resourcesUrl("http://127.0.0.1:8000/")).toBe("http://127.0.0.1:8000");
  expect(resourcesUrl("https://gym.example/gdpval//")).toBe("https://gym.example/gdpval");
  for (const text of [
    "gym.example",
    "ftp://gym.example",
    "http://user:secret-word@gym.example",
    "http://gym.example/?key=secret-word",
    "http://gym.example/#secret-word",
  ]) {
    expect(() => resourcesUrl(text)).toThrow(
      expect.objectContaining({ code: "resources_url", message: expect.not.stringContaining("secret-word") as string }) as Error,
    );
  }
});
