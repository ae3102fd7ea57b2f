// SPDX-License-Identifier: Apache-2.0
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { OFFICE_SERVER } from "../../examples/stand-ins/office-jobs/job.ts";
import type { OfficeCall } from "../../examples/stand-ins/office-tools.ts";
import type { Usage as Sent } from "../../examples/stand-ins/script.ts";
import { amount } from "../../src/rollout/summary-table.ts";
import { ODD, ROLLOUTS } from "../support/reference-rows.ts";
import type { ReferenceRun } from "./reference-run.ts";

/**
 * The numbers of the reference run, wherever they are told: as the servers counted, or as the scripts have it. `calls`: those that came to the
 * tool server. Nothing that is expected comes from the run's own files.
 */
export function expectItsNumbers(ran: ReferenceRun, calls: readonly OfficeCall[]): void {
  const finishers = calls.filter(({ tool, outcome }) => tool === "finish" && outcome === "ok").map(({ session_id }) => session_id);
  const handedIn = new Set(finishers).size;
  const twice = new Set(finishers.filter((session, at) => finishers.indexOf(session) < at)).size;
  expect([handedIn, twice]).toEqual([217, 1]);
  expectItsEnds(ran, { ...sessionsOfTools(calls), exec_command: ROLLOUTS }, { handedIn, twice });
  const answered = expectItsModelCalls(ran);
  const usage = expectItsTokens(ran);
  expectItsTools(ran, calls);
  expectItsTexts(ran, { answered, usage });
}

/** In how many sessions each was called well. */
function sessionsOfTools(calls: readonly OfficeCall[]): Record<string, number> {
  const well = calls.filter(({ outcome }) => outcome === "ok");
  const sessionsOf = (tool: string): number => new Set(well.flatMap((call) => (call.tool === tool ? [call.session_id] : []))).size;
  return Object.fromEntries(well.map(({ tool }) => [tool, sessionsOf(tool)]));
}

function expectItsEnds(
  { ended, results, summary, coverage, metrics }: ReferenceRun,
  sessionsPerTool: Record<string, number>,
  { handedIn, twice }: { handedIn: number; twice: number },
): void {
  expect(ended.code).toBe(1);
  const byStatus = { completed: 218, incomplete: 1, failed: 1, refused: 0, cancelled: 0 };
  expect(results.get(ODD.saysOnly)).toMatchObject({ status: "completed", evidence: { required_tools_missing: ["finish"] } });
  expect(results.get(ODD.hangs)).toMatchObject({ status: "incomplete", incomplete_cause: "wall_clock" });
  expect(results.get(ODD.killer)).toMatchObject({ status: "failed", failure: { failure_kind: "kill_shaped" }, attempts: [{}] });
  expect(coverage).toMatchObject({ expected: ROLLOUTS, ...byStatus, missing: 0, reconciled: true, complete: true, not_asked: 0 });
  expect(summary).toMatchObject({
    total: ROLLOUTS,
    missing: 0,
    by_status: byStatus,
    by_failure_kind: { kill_shaped: 1 },
    by_incomplete_cause: { wall_clock: 1 },
    startup_failures: 0,
    started: ROLLOUTS,
    attempts: ROLLOUTS,
    sessions_per_tool: sessionsPerTool,
    required_tools: { sessions: ROLLOUTS, called: handedIn, called_more_than_once: twice },
    interrupted: false,
    breaker_openings: [],
  });
  expect(metrics).toMatchObject({
    partial: false,
    expected: ROLLOUTS,
    expected_from: "summary.json",
    outcomes: { ...byStatus, missing: 0 },
    started: ROLLOUTS,
    submissions: {
      tools: ["finish"],
      by_end: {
        called: handedIn,
        ended_without: 1,
        limit_without: 1,
        none_required: 0,
        failed: 1,
        failed_after_call: 0,
        refused: 0,
        cancelled: 0,
        missing: 0,
      },
      called_more_than_once: twice,
      called_before_limit: 0,
    },
    timeouts: { wall_clock: 1, idle: 0 },
  });
  expect(metrics.attempts).toEqual({ total: ROLLOUTS, failed_by_cause: { killed_by_signal: 1 } });
  expect(metrics.causes.map(({ cause, status, count, example }) => [cause, status, count, example.task_id])).toEqual([
    ["killed_by_signal", "failed", 1, ODD.killer],
    ["required_tool_not_called", "completed", 1, ODD.saysOnly],
    ["wall_clock", "incomplete", 1, ODD.hangs],
  ]);
}

/** All that were answered. */
function expectItsModelCalls({ metrics, tally }: ReferenceRun): number {
  // The hanging call and the one that was cut off have no whole answer.
  const sent = [...tally.sent.values()];
  const answered = sent.reduce((total, one) => total + one.answered, 0);
  expect(tally.played).toEqual({ reply: answered, hang: 1, cut: 1 });
  expect(tally.sent.size).toBe(ROLLOUTS);
  expect(metrics.model_calls).toMatchObject({
    answered: { n: ROLLOUTS, total: answered, max: Math.max(...sent.map((one) => one.answered)) },
    unknown_rollouts: 0,
    by_status: { "200": answered, cut_off: 1 },
    errors_unknown_rollouts: 0,
    context_length_errors: 0,
  });
  expect(metrics.model_calls.answered.mean).toBeCloseTo(answered / ROLLOUTS, 6);
  return answered;
}

/** Without what no reply wrote to a cache. */
type Usage = Omit<Sent, "cache_write_input_tokens">;

/** All that were told. */
function expectItsTokens({ summary, metrics, tally }: ReferenceRun): Usage {
  // Of the killer's last answer no record tells: Codex counts it when its command has ended, which ended Codex.
  const usages = [...tally.sent].map(([key, { usage, last }]) => (key === ODD.killer ? without(usage, last) : usage));
  const sum = (field: keyof Usage): number => usages.reduce((total, usage) => total + usage[field], 0);
  const usage: Usage = {
    input_tokens: sum("input_tokens"),
    cached_input_tokens: sum("cached_input_tokens"),
    output_tokens: sum("output_tokens"),
    reasoning_output_tokens: sum("reasoning_output_tokens"),
  };
  const total_tokens = usage.input_tokens + usage.output_tokens;
  expect(summary.usage).toMatchObject({ sessions: ROLLOUTS, unknown_sessions: 0, ...usage, total_tokens });
  expect(summary.budget?.used.tokens).toBe(total_tokens);
  expect(metrics.usage).toEqual(summary.usage);
  expect(metrics.tokens).toMatchObject({
    input: { n: ROLLOUTS, total: usage.input_tokens, max: Math.max(...usages.map(({ input_tokens }) => input_tokens)) },
    output: { n: ROLLOUTS, total: usage.output_tokens },
    cached_input: { n: ROLLOUTS, total: usage.cached_input_tokens },
  });
  return usage;
}

function without(usage: Usage, part: Usage): Usage {
  const names = Object.keys(usage) as (keyof Usage)[];
  return Object.fromEntries(names.map((name) => [name, usage[name] - part[name]])) as Usage;
}

/** Those over MCP as their server counted them, commands as the model asked for them. */
function expectItsTools({ metrics, tally }: ReferenceRun, calls: readonly OfficeCall[]): void {
  const tools = new Map(
    metrics.tools.map(({ tool, server, rollouts, calls: made, by_status, errors }) => [
      tool,
      { server, rollouts, made, by_status, errors },
    ]),
  );
  for (const tool of new Set(calls.map((call) => call.tool))) {
    const made = calls.filter((call) => call.tool === tool);
    const failed = made.filter(({ outcome }) => outcome !== "ok").length;
    expect({ tool, ...tools.get(tool) }).toEqual({
      tool,
      server: OFFICE_SERVER,
      rollouts: new Set(made.map(({ session_id }) => session_id)).size,
      made: made.length,
      by_status: { completed: made.length - failed, ...(failed > 0 ? { failed } : {}) },
      errors: failed,
    });
  }
  const commands = [...tally.sent.values()].reduce((total, one) => total + one.commands, 0);
  // Two ended by their own pkill -f python3; the killer's last one has no end.
  const by_status = { completed: commands - 3, failed: 2, incomplete: 1 };
  expect(tools.get("exec_command")).toEqual({ server: null, rollouts: ROLLOUTS, made: commands, by_status, errors: 2 });
  expect([...tools.keys()].sort()).toEqual(["exec_command", "fetch_web_page", "finish", "web_search"]);
}

/** The same for people. */
function expectItsTexts({ ended, out }: ReferenceRun, { answered, usage }: { answered: number; usage: Usage }): void {
  for (const line of [
    /tasks +│ 220 /,
    /status +│ 218 completed, 1 incomplete, 1 failed /,
    /incomplete because +│ 1 wall_clock /,
    /failure kind +│ 1 kill_shaped /,
    /required tools +│ called in 217 of 220 sessions, more than once in 1 /,
    new RegExp(
      `model usage +│ ${amount(usage.input_tokens)} in \\(${amount(usage.cached_input_tokens)} cached\\), ` +
        `${amount(usage.output_tokens)} out \\(${amount(usage.reasoning_output_tokens)} reasoning\\), in 220 `,
    ),
  ])
    expect(ended.stdout).toMatch(line);
  const markdown = readFileSync(join(out, "report.md"), "utf8");
  for (const line of [
    "- Called finish: **217** (of 220 expected; 1 more than once)",
    "- Failed: **1** (of 220 expected)",
    `- Model calls: **${amount(answered)}** (answered, in 220 rollouts; mean ${Number((answered / ROLLOUTS).toFixed(1))})`,
    `- Tokens: **${amount(usage.input_tokens + usage.output_tokens)}** (${amount(usage.input_tokens)} in (${amount(usage.cached_input_tokens)} cached), ` +
      `${amount(usage.output_tokens)} out (${amount(usage.reasoning_output_tokens)} reasoning), in 220 sessions`,
    "| called finish | 217 of 220 (98.6 %) |",
    "| ended without finish | 1 of 220 (0.5 %) |",
    "| limit, without finish | 1 of 220 (0.5 %) |",
    "| finish called more than once | 1 of 217 (0.5 %) |",
    "| stopped by the wall clock | 1 of 220 (0.5 %) |",
    `200: ${amount(answered)}, cut\\_off: 1`,
  ])
    expect(markdown).toContain(line);
}

/** The killer has one result that says what happened, and everything that is known of its session is kept. */
export function expectTheKillerKept({ out, results }: ReferenceRun): void {
  const killer = results.get(ODD.killer)!;
  expect(killer).toMatchObject({
    status: "failed",
    cause_class: "agent",
    evidence: { signal: "SIGKILL", required_tools_missing: ["finish"] },
  });
  expect(killer.failure).toMatchObject({ failure_kind: "kill_shaped", cause_code: "killed_by_signal", terminal: true });
  expect(killer.failure!.failure_reason).toMatch(/Codex was killed by SIGKILL while this ran: .*kill -9 -1/);
  // Its first command killed only itself; its last one has no end.
  const records = killer.observations.records.filter((record) => record.kind === "tool_call");
  expect(records.map(({ tool_name, status, error_type }) => [tool_name, status, error_type])).toEqual([
    ["exec_command", "completed", null],
    ["exec_command", "failed", "exit_code"],
    ["exec_command", "incomplete", null],
  ]);
  expect(killer.attempts).toHaveLength(1);
  expect(killer.attempts[0]!.observations).toEqual(killer.observations);
  const kept = join(out, "artifacts", killer.activation_id, "attempt-0");
  expect(readdirSync(kept)).toEqual(
    expect.arrayContaining(["attempt.json", "config.toml", "events.jsonl", "stderr.log", "transcript.jsonl"]),
  );
  for (const text of ["pkill -f python3", "kill -9 -1"]) expect(readFileSync(join(kept, "transcript.jsonl"), "utf8")).toContain(text);
  expect(readFileSync(join(kept, "events.jsonl"), "utf8")).toContain("turn.started");
  const failures = readFileSync(join(out, "failures.jsonl"), "utf8").trim().split("\n");
  expect(failures.map((line) => JSON.parse(line) as object)).toMatchObject([{ task_id: { task_id: ODD.killer } }]);
}
