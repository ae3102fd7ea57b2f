// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { sessionGaps } from "../../src/codex/gaps.ts";
import { Session } from "../../src/codex/session.ts";
import { addUsage } from "../../src/codex/usage.ts";
import { gapSchema, toolCallRecordSchema } from "../../src/contract/observation.ts";
import { responseItemSchema, usageSchema, type Usage } from "../../src/contract/response.ts";
import { factsOf, recordings, told, VERSIONS } from "./recordings.ts";

const lines = (...events: object[]): string => events.map((event) => `${JSON.stringify(event)}\n`).join("");
const started = { type: "turn.started" };
const item = (phase: string, fields: object): object => ({ type: `item.${phase}`, item: fields });
const command = (fields: object): object => ({
  type: "command_execution",
  command: "ls",
  aggregated_output: "",
  exit_code: null,
  ...fields,
});

describe("Session", () => {
  it("calls an MCP call by its tool in the response and in the observations, never by its item type [R32 R33]", async () => {
    for (const version of VERSIONS) {
      const facts = await factsOf(recordings(version, "events")["mcp-success"]!.stdout);
      const call = facts.items.find((one) => one.type === "function_call");
      expect(call).toMatchObject({ name: "finish" });
      expect(facts.toolCalls).toEqual([expect.objectContaining({ tool_name: "finish", server_name: "gdpval", tool_call_id: call?.id })]);
      expect(facts.toolsCalled).toEqual({ finish: 1 });
      expect(JSON.stringify(facts.items) + JSON.stringify(facts.toolCalls)).not.toContain("mcp_tool_call");
    }
  });

  it("gives only what the contract's schemas accept", async () => {
    for (const version of VERSIONS) {
      for (const group of ["events", "provider", "startup", "signals"]) {
        for (const { stdout } of Object.values(recordings(version, group))) {
          const facts = await factsOf(stdout);
          for (const one of facts.items) responseItemSchema.parse(one);
          for (const call of facts.toolCalls) toolCallRecordSchema.parse(call);
          if (facts.usage !== null) usageSchema.parse(facts.usage);
          for (const gap of sessionGaps(facts, { kind: "completed" }, { code: 0, signal: null, timedOut: false }, "key"))
            gapSchema.parse(gap);
        }
      }
    }
  });

  it("times a tool call from the receipt of its events, and never backwards", () => {
    const session = new Session("key");
    const at = (seconds: number, event: object): void =>
      session.apply({ kind: "event", at: seconds, value: event, bytes: 1, event: event as never });
    at(1_800_000_000, item("started", command({ id: "item_1", status: "in_progress" })));
    at(1_800_000_001.5, item("completed", command({ id: "item_1", status: "completed", exit_code: 0 })));
    at(1_800_000_010, item("started", command({ id: "item_2", status: "in_progress" })));
    at(1_800_000_004, item("completed", command({ id: "item_2", status: "completed", exit_code: 0 })));
    expect(session.facts().toolCalls).toEqual([
      expect.objectContaining({
        started_at: "2027-01-15T08:00:00.000Z",
        completed_at: "2027-01-15T08:00:01.500Z",
        duration_ms: 1_500,
        timing_source: "artifact",
      }),
      expect.objectContaining({ started_at: "2027-01-15T08:00:10.000Z", completed_at: "2027-01-15T08:00:10.000Z", duration_ms: 0 }),
    ]);
  });

  it("shows an item that never completed from its newest snapshot, last and once", async () => {
    const open = [
      started,
      item("started", command({ id: "a", status: "in_progress" })),
      item("updated", { id: "a", type: "command_execution", aggregated_output: "so far" }),
      item("completed", { id: "b", type: "agent_message", text: "hello" }),
    ];
    const facts = await factsOf(lines(...open));
    expect(told(facts)).toEqual(["message hello", 'call exec_command {"cmd":"ls"} (incomplete)', 'output "so far" (incomplete)']);
    expect(facts.toolCalls).toEqual([expect.objectContaining({ status: "incomplete", completed_at: null, duration_ms: null })]);
    const later = await factsOf(lines(...open, item("completed", command({ id: "a", status: "completed", exit_code: 0 }))));
    expect(told(later)).toEqual(["message hello", 'call exec_command {"cmd":"ls"}', 'output ""']);
  });

  it("records a tool item that completed without having started", async () => {
    const facts = await factsOf(lines(started, item("completed", command({ id: "item_9", status: "completed", exit_code: 0 }))));
    expect(facts.toolStartsMissing).toEqual(["item_9"]);
    const gaps = sessionGaps(facts, { kind: "completed" }, { code: 0, signal: null, timedOut: false }, "key");
    expect(gaps).toContainEqual({ code: "tool_start_unavailable", invocation_id: "key", detail: "item_9" });
  });

  it("keeps items apart whose id comes twice or is missing [A12]", async () => {
    const text = (id: string | undefined, words: string): object =>
      item("completed", { ...(id === undefined ? {} : { id }), type: "agent_message", text: words });
    const facts = await factsOf(lines(text("item_1", "a"), text("item_1", "b"), text(undefined, "c"), text(undefined, "d")));
    expect(told(facts)).toEqual(["message a", "message b", "message c", "message d"]);
    expect(new Set(facts.items.map(({ id }) => id)).size).toBe(4);
  });

  it("survives known items whose fields are not what they should be [A12]", async () => {
    const odd = [
      item("completed", { id: "1", type: "agent_message", text: 5 }),
      item("completed", {
        id: "2",
        type: "mcp_tool_call",
        server: null,
        tool: null,
        arguments: "x",
        result: { content: "no list" },
        error: 5,
      }),
      item("completed", { id: "3", type: "command_execution", command: ["ls"], aggregated_output: null, exit_code: "1" }),
      item("completed", { id: "4", type: "collab_tool_call", novelty: true }),
      item("completed", { id: "5", type: "error" }),
      { type: "turn.failed", error: "plain" },
      { type: "turn.failed" },
    ];
    const facts = await factsOf(lines(...odd));
    for (const one of facts.items) responseItemSchema.parse(one);
    expect(facts.turnFailures).toEqual(["plain", "unknown error"]);
  });

  it("says that the tools were denied when Codex cancelled a call by itself [B1]", async () => {
    const call = { id: "1", type: "mcp_tool_call", server: "s", tool: "finish", arguments: {}, result: null };
    const denied = { ...call, error: { message: "user cancelled MCP tool call" }, status: "failed" };
    const facts = await factsOf(lines(started, item("started", call), item("completed", denied)));
    expect(facts.toolCalls).toEqual([expect.objectContaining({ status: "failed", error_type: "tools_denied" })]);
    expect(facts.toolsCalled).toEqual({});
  });
});

describe("usage", () => {
  const turn = (cached: unknown, reasoning: unknown): object => ({
    input_tokens: 10,
    output_tokens: 2,
    cached_input_tokens: cached,
    reasoning_output_tokens: reasoning,
  });
  it.each<[string, unknown[], Partial<Usage> | null]>([
    [
      "one turn",
      [turn(4, 1)],
      { input_tokens: 10, output_tokens: 2, total_tokens: 12, cached_input_tokens: 4, reasoning_output_tokens: 1 },
    ],
    ["two turns", [turn(4, 1), turn(5, 2)], { total_tokens: 24, cached_input_tokens: 9, reasoning_output_tokens: 3 }],
    ["a zero", [turn(4, 0)], { cached_input_tokens: 4, reasoning_output_tokens: null }],
    ["a zero in one of two turns", [turn(4, 1), turn(0, 2)], { cached_input_tokens: null, reasoning_output_tokens: 3 }],
    ["a counter that comes back", [turn(0, 1), turn(4, 2)], { cached_input_tokens: null, reasoning_output_tokens: 3 }],
    ["true", [turn(true, 1)], { cached_input_tokens: null, reasoning_output_tokens: 1 }],
    ["a fraction and a text", [turn(1.5, "3")], { cached_input_tokens: null, reasoning_output_tokens: null }],
    ["negative and absent", [turn(-1, undefined)], { cached_input_tokens: null, reasoning_output_tokens: null }],
    ["a turn without usage", [turn(4, 1), undefined], null],
    ["input that is no number", [{ input_tokens: "10", output_tokens: 2 }, turn(4, 1)], null],
  ])("of %s is added up, and an unreliable counter is null rather than 0", (_name, turns, expected) => {
    let usage: Usage | null | undefined;
    for (const reported of turns) usage = addUsage(usage, reported);
    if (expected === null) expect(usage).toBeNull();
    else expect(usage).toMatchObject(expected);
  });
});
