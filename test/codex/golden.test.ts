// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import type { Verdict } from "../../src/codex/verdict.ts";
import { played, recordings, told, VERSIONS, type Version } from "./recordings.ts";

// Worked out by hand from the mapping's description and the recordings' lines, not from this program's output.

const DONE = "message done";
const SHELL = (command: string): string => `call exec_command {"cmd":"/bin/bash -lc '${command}'"}`;
const MCP_TIMEOUT = (tool: string): string =>
  JSON.stringify(
    `error: tool call error: tool call failed for \`gdpval/${tool}\`\n\nCaused by:\n    timed out awaiting tools/call after 1000ms`,
  );
const BAD_ARGS = JSON.stringify(
  "MCP error -32602: Input validation error: Invalid arguments for tool finish: Invalid input: expected string, received number at reason\nInvalid input: expected array, received undefined at paths",
);

/** [input, output, cached, reasoning] */
type Tokens = [number, number, number | null, number | null];
const ONE_CALL: Tokens = [100, 20, null, null];
const TWO_CALLS: Tokens = [200, 40, null, null];

interface Golden {
  said: string[];
  tokens: Tokens;
  /** `name status error_type` of the observed tool calls, the same order. */
  tools?: string[];
}
const EVENTS: Record<string, Golden | Record<Version, Golden>> = {
  "plain-message": { said: ["message hi there"], tokens: [100, 20, 64, 7] },
  reasoning: { said: ["reasoning **Thinking** about it", "message answer"], tokens: [100, 20, null, 7] },
  "no-output-message": { said: [], tokens: ONE_CALL },
  "shell-ok": {
    said: ["message running", SHELL("echo out; echo err >&2"), 'output "out\\nerr\\n"', DONE],
    tokens: TWO_CALLS,
    tools: ["exec_command completed null"],
  },
  "shell-fail": {
    said: [`${SHELL("echo nope; exit 3")} (incomplete)`, 'output "nope\\n\\n[exit code: 3]"', DONE],
    tokens: TWO_CALLS,
    tools: ["exec_command failed exit_code"],
  },
  "shell-bad-args": { said: [DONE], tokens: TWO_CALLS },
  "shell-yielded": {
    // 0.144.4 loses what a command printed early; its transcript has it.
    "0.144.4": {
      said: [SHELL("echo a; sleep 1.2; echo b"), 'output "b\\n"', "message ok"],
      tokens: TWO_CALLS,
      tools: ["exec_command completed null"],
    },
    "0.171.0": {
      said: [SHELL("echo a; sleep 1.2; echo b"), 'output "a\\nb\\n"', "message ok"],
      tokens: TWO_CALLS,
      tools: ["exec_command completed null"],
    },
  },
  "shell-two-parallel": {
    // Started and never completed: they come last, as incomplete.
    "0.144.4": {
      said: [
        DONE,
        `${SHELL("sleep 0.5; echo a")} (incomplete)`,
        'output "" (incomplete)',
        `${SHELL("sleep 0.5; echo b")} (incomplete)`,
        'output "" (incomplete)',
      ],
      tokens: TWO_CALLS,
      tools: ["exec_command incomplete null", "exec_command incomplete null"],
    },
    "0.171.0": {
      said: [SHELL("sleep 0.5; echo a"), 'output "a\\n"', SHELL("sleep 0.5; echo b"), 'output "b\\n"', DONE],
      tokens: TWO_CALLS,
      tools: ["exec_command completed null", "exec_command completed null"],
    },
  },
  "mcp-success": {
    said: ['call finish {"reason":"all done","paths":["/root/a.xlsx"]}', 'output "all done"', DONE],
    tokens: TWO_CALLS,
    tools: ["finish completed null"],
  },
  "mcp-multi-content": { said: ["call image {}", 'output "a\\nb"', DONE], tokens: TWO_CALLS, tools: ["image completed null"] },
  "mcp-tool-iserror": {
    said: ["call boom {} (incomplete)", 'output "ERROR: Files do not exist: [x]"', DONE],
    tokens: TWO_CALLS,
    tools: ["boom failed tool_error"],
  },
  "mcp-tool-throws": {
    said: ["call thrower {} (incomplete)", 'output "kaboom"', DONE],
    tokens: TWO_CALLS,
    tools: ["thrower failed tool_error"],
  },
  "mcp-bad-args": {
    said: ['call finish {"reason":5} (incomplete)', `output ${BAD_ARGS}`, DONE],
    tokens: TWO_CALLS,
    tools: ["finish failed tool_error"],
  },
  "mcp-tool-timeout": {
    "0.144.4": {
      said: [
        'call slow {"ms":4000} (incomplete)',
        `output ${MCP_TIMEOUT("slow")}`,
        'call finish {"reason":"x","paths":[]} (incomplete)',
        `output ${MCP_TIMEOUT("finish")}`,
        DONE,
      ],
      tokens: [300, 60, null, null],
      tools: ["slow timeout timeout", "finish timeout timeout"],
    },
    "0.171.0": {
      said: [
        'call slow {"ms":4000} (incomplete)',
        `output ${MCP_TIMEOUT("slow")}`,
        'call finish {"reason":"x","paths":[]}',
        'output "x"',
        DONE,
      ],
      tokens: [300, 60, null, null],
      tools: ["slow timeout timeout", "finish completed null"],
    },
  },
  "mcp-two-parallel": {
    "0.144.4": {
      said: [
        SHELL("echo hi"),
        'output "hi\\n"',
        'call slow {"ms":1000}',
        'output "slow done"',
        'call web_search {"query":"q"}',
        'output "result for q"',
        DONE,
      ],
      tokens: TWO_CALLS,
      tools: ["exec_command completed null", "slow completed null", "web_search completed null"],
    },
    "0.171.0": {
      said: [
        'call slow {"ms":1000}',
        'output "slow done"',
        'call web_search {"query":"q"}',
        'output "result for q"',
        SHELL("echo hi"),
        'output "hi\\n"',
        DONE,
      ],
      tokens: TWO_CALLS,
      tools: ["slow completed null", "web_search completed null", "exec_command completed null"],
    },
  },
  "mcp-unknown-tool": { said: [DONE], tokens: TWO_CALLS },
  "mcp-flat-name": { said: [DONE], tokens: TWO_CALLS },
  "unknown-tool": { said: [DONE], tokens: TWO_CALLS },
  "file-change": { said: [DONE], tokens: TWO_CALLS },
  "file-change-shell": {
    "0.144.4": {
      said: ['call apply_patch {"changes":[{"path":"/workspace/hello.txt","kind":"add"}]}', 'output "completed"', DONE],
      tokens: TWO_CALLS,
      tools: ["apply_patch completed null"],
    },
    "0.171.0": {
      said: ['call apply_patch {"changes":[{"path":"/workspace/hello.txt","kind":"add"}]}', 'output "completed"', DONE],
      tokens: TWO_CALLS,
      tools: ["apply_patch completed null"],
    },
  },
  plan: {
    "0.144.4": {
      said: [DONE, 'call update_plan {"items":[{"text":"a","completed":false},{"text":"b","completed":false}]}', 'output ""'],
      tokens: TWO_CALLS,
      tools: ["todo_list completed null"],
    },
    "0.171.0": { said: [DONE], tokens: TWO_CALLS }, // the tool is gone there
  },
};

const METADATA =
  "Model metadata for `gpt-5-codex` not found. Defaulting to fallback metadata; this can degrade performance and cause issues.";
const DEPRECATED =
  "`[features].multi_agent` is deprecated. It still controls the V1 fallback. `[agents].enabled = false` disables subagent tools even when the model selects a subagent version, unless `[features].multi_agent_v2` is enabled.";
/** A failure names the advisories that a good end would have excused. */
const ADVISORIES: Record<Version, string[]> = { "0.144.4": [METADATA], "0.171.0": [DEPRECATED, DEPRECATED, METADATA] };

type End = "completed" | "max_output_tokens" | "context_overflow" | [error: string, cause: string, kind: string];
interface Provider {
  end: End;
  reconnects?: number;
  /** Messages in the conversation. */
  said?: string[];
}
const CUT = "stream disconnected before completion: ";
const HIGH_DEMAND = { "0.144.4": "We're", "0.171.0": "We’re" };
const FORBIDDEN = /^unexpected status 403 Forbidden: <html>/;

function providerGolden(version: Version): Record<string, Provider> {
  const old = version === "0.144.4";
  const failed = (error: string, cause = "turn_failed", kind = "agent_run_error"): End => [error, cause, kind];
  const busy = failed(
    `${HIGH_DEMAND[version]} currently experiencing high demand, which may cause temporary errors.`,
    "turn_failed",
    "provider_unavailable",
  );
  const limited = failed("exceeded retry limit, last status: 429 Too Many Requests", "rate_limited", "provider_unavailable");
  const lost = (why: string): End => failed(CUT + why, "stream_lost", "provider_unavailable");
  const body = (message: string, code: string): string =>
    JSON.stringify({ error: { message, type: "invalid_request_error", code, param: null } });
  const cutOff = "Transport error: network error: error decoding response body";
  return {
    "400": { end: failed(body("Bad request: FAKE detail", "bad")) },
    "400-after-tool": { end: failed(body("second call bad", "bad")), said: [SHELL("echo hi"), 'output "hi\\n"'] },
    "400-context": { end: "context_overflow" },
    "429": { end: limited },
    "429-noretry": { end: limited },
    "429-quota": {
      end: old ? limited : failed("Quota exceeded. Check your plan and billing details.", "quota_exhausted", "provider_quota_exhausted"),
    },
    "429-retry-after": old ? { end: limited } : { end: "completed", reconnects: 1, said: ["message ok"] },
    "500": { end: busy, reconnects: 5 },
    "500-noretry": { end: busy },
    "503-then-ok": { end: "completed", said: ["message ok"] },
    "stream-cut": { end: lost(cutOff), reconnects: 5, said: Array.from({ length: 6 }, () => "message partial") },
    "stream-cut-noretry": { end: lost(cutOff), said: ["message partial"] },
    "stream-cut-then-ok": { end: "completed", reconnects: 1, said: ["message ok"] },
    "idle-stall": { end: lost("idle timeout waiting for SSE"), reconnects: 1, said: ["message partial", "message partial"] },
    "not-sse-200": { end: lost("stream closed before response.completed"), reconnects: 1 },
    "response-failed": { end: lost("model exploded"), reconnects: 1 },
    "response-failed-context": { end: "context_overflow" },
    "incomplete-max-output": old
      ? { end: "max_output_tokens", reconnects: 1, said: ["message half", "message half"] }
      : { end: "max_output_tokens", said: ["message half"] },
  };
}

describe.each(VERSIONS)("recordings of Codex %s", (version) => {
  const events = recordings(version, "events");
  it.each(Object.keys(events))("the session %s becomes the items, usage and tool calls worked out by hand [R32 R33]", async (name) => {
    const entry = EVENTS[name];
    const golden = entry === undefined || "said" in entry ? entry : entry[version];
    expect(golden, "a recording without an expectation").toBeDefined();
    const { facts, verdict, gaps } = await played(events[name]!);
    expect(verdict).toEqual({ kind: "completed" } satisfies Verdict);
    expect(told(facts)).toEqual(golden?.said);
    const { usage } = facts;
    expect([usage?.input_tokens, usage?.output_tokens, usage?.cached_input_tokens, usage?.reasoning_output_tokens]).toEqual(golden?.tokens);
    expect(usage?.total_tokens).toBe(golden!.tokens[0] + golden!.tokens[1]);
    const observed = facts.toolCalls.map((call) => `${call.tool_name} ${call.status} ${call.error_type}`);
    expect(observed).toEqual(golden?.tools ?? []);
    expect(gaps.map(({ code, detail }) => (detail === undefined ? code : `${code}: ${detail}`))).toEqual([
      "model_call_join_key_unavailable",
      "subagent_hierarchy_unavailable",
      "compaction_observations_unavailable",
      ...(golden?.tokens[2] == null ? ["cached_token_usage_unavailable"] : []),
      ...(golden?.tokens[3] == null ? ["reasoning_token_usage_unavailable"] : []),
      "model_metadata_fallback: warning",
    ]);
  });

  const provider = recordings(version, "provider");
  it.each(Object.entries(providerGolden(version)))("a model server's %s ends as worked out by hand [A7]", async (name, golden) => {
    const { facts, verdict, gaps } = await played(provider[name]!);
    if (golden.end === "completed") expect(verdict).toEqual({ kind: "completed" });
    else if (typeof golden.end === "string") expect(verdict).toEqual({ kind: "incomplete", cause: golden.end });
    else {
      const [error, cause, failureKind] = golden.end;
      expect(verdict).toEqual({ kind: "failed", error: [...ADVISORIES[version], error].join("\n"), cause, failureKind });
    }
    expect(told(facts)).toEqual(golden.said ?? []);
    expect(facts.reconnects).toBe(golden.reconnects ?? 0);
    const codes = gaps.map(({ code }) => code);
    // Any top-level error, recovered or not, leaves some usage unknown; and so does a turn that did not complete.
    const whole = name === "503-then-ok";
    expect(codes.includes("partial_model_usage_unavailable")).toBe(!whole);
    expect(codes.includes("model_metadata_fallback")).toBe(typeof golden.end === "string");
  });

  it.each(["401", "403-html"])("a model server's %s names the provider, after five reconnects", async (name) => {
    const { facts, verdict } = await played(provider[name]!);
    const refused = { cause: "model_key_refused", terminal: true }; // [fault D3]
    expect(verdict).toMatchObject({
      kind: "failed",
      failureKind: "provider_unavailable",
      ...(name === "401" ? refused : { cause: "turn_failed" }),
    });
    expect(facts.errors[0]).toMatch(name === "401" ? /^unexpected status 401 Unauthorized: / : FORBIDDEN);
    expect(facts.reconnects).toBe(5);
  });

  const signals = recordings(version, "signals");
  it.each(Object.keys(signals).filter((name) => /^SIG(TERM|HUP|KILL)/.test(name)))(
    "%s from inside is told as that signal, with what was begun",
    async (name) => {
      const { facts, verdict } = await played(signals[name]!);
      const signal = name.split("-")[0];
      expect(verdict).toEqual({
        kind: "failed",
        error: [...ADVISORIES[version], `Codex was killed by ${signal}`].join("\n"),
        cause: "killed_by_signal",
        failureKind: "kill_shaped",
      });
      const begun = name.endsWith("-shell") ? ["exec_command"] : name.endsWith("-mcp-wait") ? ["slow"] : [];
      expect(facts.toolCalls.map((call) => `${call.tool_name} ${call.status}`)).toEqual(begun.map((tool) => `${tool} incomplete`));
    },
  );

  it.each(Object.keys(signals).filter((name) => name.startsWith("SIGINT")))("%s leaves only an exit code [R11]", async (name) => {
    const { verdict } = await played(signals[name]!);
    expect(verdict).toMatchObject({ kind: "failed", cause: "exit_code", error: expect.stringMatching(/\nCodex exited with code 1$/) });
  });

  it("a missing model key is told although Codex says so only after the turn started", async () => {
    const { verdict } = await played(recordings(version, "config")["env-key-missing"]!);
    expect(verdict).toMatchObject({ kind: "failed", cause: "model_key_missing", failureKind: "agent_request_failed" });
  });
});
