// SPDX-License-Identifier: Apache-2.0
import { expect, it } from "vitest";
import type { ToolCallRecord } from "../../src/contract/observation.ts";
import type { Usage } from "../../src/contract/response.ts";
import type { ActivationResult, Attempt, Evidence, ModelCall } from "../../src/contract/result.ts";
import { explain } from "../../src/activation/explain.ts";
import { explanationText } from "../../src/rollout/explain-text.ts";
import { attemptOf, resultOf } from "../support/result-documents.ts";

const FAILURE: NonNullable<Attempt["failure"]> = {
  failure_kind: "agent_run_error",
  cause_code: "mcp_server_auth",
  server_names: ["office"],
  stage: "agent",
  failure_reason: "first line\n\u001b[31msecond\u001b[0m line",
  terminal: true,
  status_code: 502,
};
const EVIDENCE: NonNullable<Attempt["evidence"]> = {
  turn_started: true,
  turn_completed: false,
  model_answered: true,
  exit_code: null,
  signal: "SIGTERM",
  oom_killed: null,
  memory_limit_reached: null,
  launch_error: null,
  stopped: { kind: "wall_clock" },
  elapsed_ms: 61_000,
  reconnects: 2,
  tools_called: {},
  required_tools: ["finish"],
  required_tools_missing: ["finish"],
  cleanup_error: null,
  threads: [],
  model_calls: [],
};

function call(tool_name: string, started_at: string | null, more: Partial<ToolCallRecord> = {}): ToolCallRecord {
  return {
    kind: "tool_call",
    invocation_id: "r1",
    tool_call_id: tool_name,
    tool_name,
    started_at,
    completed_at: started_at,
    duration_ms: 1_500,
    timing_source: "artifact",
    status: "completed",
    error_type: null,
    ...more,
  };
}

const failedAttempt = attemptOf(0, {
  failure: FAILURE,
  cause_class: "grant",
  grants: [
    { name: "office", required: true },
    { name: "extra", required: false },
    { name: "crm", required: false },
  ],
  observations: {
    source: "codex",
    records: [],
    gaps: [
      { code: "mcp_server_unavailable", detail: '{"server_name":"extra","phase":"connect","case":"refused","reason":"nobody listens"}' },
      { code: "tool_grant_skipped", detail: "crm" },
      { code: "agent_startup_failed", detail: FAILURE.failure_reason },
      { code: "cached_token_usage_unavailable" },
    ],
  },
});
const stoppedAttempt = attemptOf(1, {
  status: "incomplete",
  incomplete_cause: "wall_clock",
  cause_class: "limit",
  evidence: EVIDENCE,
  grants: [{ name: "office", required: true }],
  observations: {
    source: "codex",
    records: [
      call("no_time", null, { status: "incomplete", duration_ms: null }),
      call("second", "2026-11-29T16:00:02.500Z", { server_name: "office", status: "failed", error_type: "tool_error" }),
      call("first", "2026-11-29T16:00:01.000Z"),
    ],
    gaps: [{ code: "submission_late", detail: "finish" }],
  },
});
const RESULT = resultOf("act-1", {
  status: "incomplete",
  incomplete_cause: "wall_clock",
  cause_class: "limit",
  attempts: [stoppedAttempt, failedAttempt],
  artifacts: [
    { path: "quarantine/a.txt", source: "/workspace/a.txt", kind: "submission", bytes: 3, sha256: "0", uri: "dir:x", quarantined: true },
  ],
});

it("tells all attempts in order: what became of each server, each call by its time, and the end with its reasons", () => {
  const { attempts, ending } = explain(RESULT);
  expect(attempts.map(({ attempt }) => attempt)).toEqual([0, 1]);
  expect(attempts[0]?.servers).toEqual([
    { name: "office", required: true, state: "unavailable", detail: null },
    { name: "extra", required: false, state: "unavailable", detail: "connect, refused, nobody listens" },
    { name: "crm", required: false, state: "skipped", detail: null },
  ]);
  expect(attempts[0]?.gaps).toEqual([{ code: "cached_token_usage_unavailable" }]);
  expect(attempts[1]?.tool_calls.map(({ tool_name }) => tool_name)).toEqual(["first", "second", "no_time"]);
  expect(ending).toEqual({ status: "incomplete", incomplete_cause: "wall_clock", cause_class: "limit", failure: null });
});

it("says it in lines for a person, in which nothing steers the terminal", () => {
  const text = explanationText(explain(RESULT));
  expect(text).not.toContain("\u001b");
  expect(text.split("\n")).toEqual([
    "act-1: incomplete",
    "asked     task office/../../x of run run-1, attempts: 2, last capture key r1",
    "",
    "attempt 0 (r1)",
    "  16:00:00.000  started: worker w1, Codex 0.144.4, host",
    "                server office (required): unavailable",
    "                server extra (optional): unavailable: connect, refused, nobody listens",
    "                server crm (optional): skipped",
    "  16:01:00.000  ended: failed: mcp_server_auth of office (agent_run_error, stage agent, final), class grant",
    "                | first line",
    "                | \\u001b[31msecond\\u001b[0m line",
    "                because Codex was not launched",
    "                not observed: cached_token_usage_unavailable",
    "",
    "attempt 1 (r1-a1)",
    "  16:00:00.000  started: worker w1, Codex 0.144.4, host",
    "                server office (required): granted, 1 call",
    "  16:00:01.000  call   first  1.5 s  completed",
    "  16:00:02.500  call   second (office)  1.5 s  failed: tool_error",
    "  at ?          call   no_time  -  incomplete",
    "  16:01:00.000  ended: incomplete (wall_clock), class limit",
    "                because a turn started; the model answered; killed by SIGTERM; stopped by wall_clock; 1 min 01 s measured; 2 reconnects; never called: finish",
    "                tokens unknown",
    "                not observed: submission_late: finish",
    "",
    "end       incomplete (wall_clock), class limit",
    "usage     nothing is known of what 1 of 2 attempts took",
    "artifact  quarantine/a.txt  submission, 3 bytes, from /workspace/a.txt, QUARANTINED: it holds a secret",
  ]);
});

const thread = (thread_id: string, agent_path: string | null, open_model_calls = 0): Evidence["threads"][number] => ({
  thread_id,
  parent_thread_id: agent_path === null ? null : "t0",
  agent_path,
  model_calls: 2,
  tokens: { ...TOKENS, input_tokens: 12_000 },
  open_model_calls,
});
const TOKENS: ModelCall["tokens"] = {
  input_tokens: 6_000,
  cached_input_tokens: 1_024,
  cache_write_input_tokens: null,
  output_tokens: 60,
  reasoning_output_tokens: 0,
};
const modelCall = (thread_id: string, second: number, response_id: string | null): ModelCall => ({
  thread_id,
  response_id,
  at: `2026-11-29T16:00:${String(second).padStart(2, "0")}.000Z`,
  kind: second === 2 ? "compaction" : "turn",
  tokens: TOKENS,
});
const USAGE: Usage = {
  input_tokens: 24_000,
  output_tokens: 240,
  total_tokens: 24_240,
  cached_input_tokens: 4_096,
  reasoning_output_tokens: null,
  cache_write_input_tokens: null,
};
const withCalls = (threads: Evidence["threads"], model_calls: ModelCall[], usage: Usage | null = USAGE): string[] =>
  explanationText(
    explain(resultOf("act-1", { attempts: [attemptOf(0, { evidence: { ...EVIDENCE, threads, model_calls }, usage })], usage })),
  )
    .split("\n")
    .filter((line) => /thread|root|model calls|tokens|usage/.test(line));

it("has a table of the model calls, by thread and by call, with every kind of tokens, and says which calls nobody knows the end of", () => {
  const calls = [
    modelCall("t0", 1, "resp_a"),
    modelCall("t1", 2, "resp_b"),
    modelCall("t1", 3, null),
    { ...modelCall("t0", 4, "resp_c"), at: null },
  ];
  expect(withCalls([thread("t0", null), thread("t1", "/root/sub_one", 1)], calls)).toEqual([
    "                tokens 24,000 in (4,096 cached), 240 out",
    "                thread         calls  open   input  cached  cache write  output  reasoning",
    "                root               2     0  12,000   1,024            ?      60          0",
    "                /root/sub_one      2     1  12,000   1,024            ?      60          0",
    "                model calls of  for         input  cached  cache write  output  reasoning  response",
    "  16:00:01.000  root            turn        6,000   1,024            ?      60          0  resp_a",
    "  16:00:02.000  /root/sub_one   compaction  6,000   1,024            ?      60          0  resp_b",
    "  16:00:03.000  /root/sub_one   turn        6,000   1,024            ?      60          0  -",
    "                root            turn        6,000   1,024            ?      60          0  resp_c",
    "usage     tokens: 24,000 in (4,096 cached), 240 out",
  ]);
});

it("shows the first and the last of many model calls and threads, how many are between, and no line that others wrote", () => {
  const calls = Array.from({ length: 500 }, (_, at) => modelCall("t0", at % 60, `resp_${at}`));
  calls[0]!.response_id = `\u001b[2J\n16:00:00.000  root  turn ${"x".repeat(500)}`;
  const evil = thread("t1", `/root/\u202eevil\n${"y".repeat(500)}`);
  const threads = [thread("t0", null), evil, ...Array.from({ length: 30 }, (_, at) => thread(`s${at}`, `/root/${at}`))];
  const lines = withCalls(threads, calls);
  expect(lines.filter((line) => / root .*resp_/.test(line)).map((line) => /resp_\d+/.exec(line)![0])).toEqual(
    [...Array.from({ length: 14 }, (_, at) => at + 1), ...Array.from({ length: 15 }, (_, at) => at + 485)].map((at) => `resp_${at}`),
  );
  expect(lines).toContainEqual(expect.stringMatching(/^ +\.\.\. 470 model calls between: --json has them all$/));
  expect(lines).toContainEqual(expect.stringMatching(/^ +\.\.\. 12 threads: --json has them all$/));
  expect(lines.join("\n")).not.toMatch(/[\u001b\u202e]/);
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThan(220);
  expect(lines.filter((line) => line.startsWith("16:00"))).toEqual([]);
  expect(
    explain(resultOf("act-1", { attempts: [attemptOf(0, { evidence: { ...EVIDENCE, threads, model_calls: calls } })] })),
  ).toMatchObject({
    attempts: [{ evidence: { threads: { length: 32 }, model_calls: { length: 500 } } }],
  });
});

it("explains a result of an earlier version and one that was never run", () => {
  const { grants: _grants, evidence: _evidence, cause_class: _class, incomplete_cause: _cause, ...older } = failedAttempt;
  const old = { ...RESULT, attempts: [older] } as unknown as ActivationResult;
  expect(explain(old).attempts[0]?.servers.map(({ name, required }) => [name, required])).toEqual([
    ["extra", null],
    ["crm", null],
    ["office", null],
  ]);
  expect(explanationText(explain(old))).toContain("server extra: unavailable");
  expect(explanationText(explain(resultOf("act-2", { status: "refused", failure: FAILURE })))).toContain("| first line");
});

it("explains how a rollout was scored, why it was not, and that its session stayed open", () => {
  const rollout: NonNullable<ActivationResult["rollout"]> = {
    protocol: "session",
    resources_session_id: "s1",
    row_sha256: "0".repeat(64),
    verified: true,
    verifications: 2,
    verification_cut: false,
    verification_failure: null,
    cleanup_error: null,
  };
  const lines = (more: Partial<ActivationResult>): string[] => explanationText(explain(resultOf("act-1", more))).split("\n");
  expect(lines({ rollout, reward: -0.5, verification: { judge: "no\u202Ename", long: "x".repeat(5_000) } }).slice(4)).toEqual([
    "reward    -0.5, verified 2 times",
    expect.stringMatching(/^verifier {2}\{"judge":"no\\u202ename","long":"x+ \.\.\.$/),
  ]);
  const failed = {
    ...FAILURE,
    failure_kind: "verifier_error",
    cause_code: "verification_failed",
    failure_reason: "/verify: HTTP 500",
  } as const;
  const unscored = {
    ...rollout,
    verified: false,
    verifications: 0,
    verification_failure: failed,
    cleanup_error: "/close_session: HTTP 500",
  };
  expect(lines({ rollout: unscored }).slice(4)).toEqual([
    "reward    none",
    "unscored  verification_failed (verifier_error)",
    "                | /verify: HTTP 500",
    "session   not closed: /close_session: HTTP 500",
  ]);
  expect(lines({}).join()).not.toContain("reward");
});
