// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { refusedResult } from "../../src/contract/refused.ts";
import { resultSchema, type ActivationResult } from "../../src/contract/result.ts";
import { runsAgain } from "../../src/rollout/again.ts";
import type { Spending } from "../../src/rollout/budget.ts";
import { exitCodeOf } from "../../src/rollout/exit-code.ts";
import { factsOf, type ResultFacts } from "../../src/rollout/facts.ts";
import { began } from "../../src/rollout/probe.ts";
import { humanReporter, jsonReporter, progressLine, type ProgressState } from "../../src/rollout/progress.ts";
import { refusedRows } from "../../src/rollout/refused-row.ts";
import { durationText } from "../../src/contract/figures.ts";
import { summaryTable } from "../../src/rollout/summary-table.ts";
import { spread } from "../../src/report/metrics.ts";
import { summarise } from "../../src/rollout/summary.ts";
import { distributionOf } from "../../web/src/charts/histogram.ts";
import { totalsText } from "../../src/rollout/usage-totals.ts";
import { attemptOf, resultOf } from "../support/result-documents.ts";

function failed(
  cause_class: ActivationResult["cause_class"],
  cause_code: string,
  facts: Partial<ActivationResult> = {},
): Partial<ActivationResult> {
  const failure = {
    failure_kind: "agent_run_error" as const,
    cause_code,
    server_names: [],
    stage: "agent" as const,
    failure_reason: "",
    terminal: false,
    status_code: 502,
  };
  return { status: "failed", cause_class, failure, attempts: [attemptOf(0, { failure })], ...facts };
}

const STARTUP: Partial<ActivationResult> = failed("grant", "mcp_server_unreachable", {
  observations: { source: "codex", records: [], gaps: [{ code: "agent_startup_failed", detail: "required MCP servers failed" }] },
});

function facts(result: Partial<ActivationResult>, id = "act-1"): ResultFacts {
  return factsOf(resultOf(id, result))!;
}

const COMPLETED: Partial<ActivationResult> = { status: "completed", attempts: [attemptOf(0, { status: "completed" })] };
const REFUSED: Partial<ActivationResult> = { status: "refused", cause_class: "grant", worker: null };
const CANCELLED: Partial<ActivationResult> = { status: "cancelled", cause_class: "cancelled" };
const WALL_CLOCK: Partial<ActivationResult> = { ...COMPLETED, status: "incomplete", incomplete_cause: "wall_clock", cause_class: "limit" };

describe("runsAgain [E1]", () => {
  it.each<[string, Partial<ActivationResult>, { infra: boolean; failed: boolean }]>([
    ["completed", COMPLETED, { infra: false, failed: false }],
    ["stopped by the wall clock", WALL_CLOCK, { infra: false, failed: false }],
    ["failed by the agent", failed("agent", "kill_shaped"), { infra: false, failed: true }],
    ["failed by a lost worker", failed("infrastructure", "session_lost"), { infra: true, failed: true }],
    ["failed by the sandbox", failed("infrastructure", "sandbox_failed"), { infra: true, failed: true }],
    ["failed by the model server", failed("model_provider", "stream_lost"), { infra: true, failed: true }],
    ["failed at start-up", STARTUP, { infra: true, failed: true }],
    ["refused", REFUSED, { infra: false, failed: true }],
    ["cancelled", CANCELLED, { infra: false, failed: true }],
  ])("decides by policy for a task that %s", (_what, result, expected) => {
    const decided = { infra: runsAgain(facts(result), "infra"), failed: runsAgain(facts(result), "failed") };
    expect(decided).toEqual(expected);
    expect(runsAgain(facts(result), "none")).toBe(false);
  });
});

function spending(stopped_by: Spending["stopped_by"]): Spending {
  return { max_model_calls: null, max_tokens: 100_000, max_hours: null, used: { model_calls: 3, tokens: 112_345, hours: 0.1 }, stopped_by };
}

describe("exitCodeOf [E18]", () => {
  it.each<
    [
      string,
      Partial<ActivationResult>[],
      { total?: number; interrupted?: boolean; allowEmpty?: boolean; stoppedBy?: Spending["stopped_by"] },
      number,
    ]
  >([
    ["all completed", [COMPLETED, COMPLETED], {}, 0],
    ["completed and incomplete", [COMPLETED, WALL_CLOCK], {}, 0],
    ["all incomplete", [WALL_CLOCK], {}, 0],
    ["some failed", [COMPLETED, failed("agent", "turn_failed")], {}, 1],
    ["some refused", [COMPLETED, REFUSED], {}, 1],
    ["some cancelled", [COMPLETED, CANCELLED], {}, 1],
    ["some without a result", [COMPLETED], { total: 2 }, 1],
    ["no tasks", [], {}, 2],
    ["no tasks, allowed", [], { allowEmpty: true }, 0],
    ["all failed", [failed("agent", "turn_failed"), STARTUP], {}, 3],
    ["failed and refused", [failed("agent", "turn_failed"), REFUSED], {}, 3],
    ["all refused", [REFUSED, REFUSED], {}, 4],
    ["all refused, or cancelled before a start", [REFUSED, CANCELLED], {}, 4],
    ["cancelled while running", [{ ...CANCELLED, attempts: [attemptOf(0)] }], {}, 3],
    ["stopped by budget", [COMPLETED], { total: 2, stoppedBy: "max_tokens" }, 5],
    ["within its budget", [COMPLETED, COMPLETED], { stoppedBy: null }, 0],
    ["interrupted", [COMPLETED], { total: 2, interrupted: true }, 75],
  ])("tells %s from the others", (_what, results, options, code) => {
    const all = results.map((result, index) => facts(result, `act-${index}`));
    const summary = summarise(all, {
      runId: "r",
      total: options.total ?? all.length,
      wallMs: 1,
      interrupted: options.interrupted ?? false,
      ...(options.stoppedBy === undefined ? {} : { budget: spending(options.stoppedBy) }),
    });
    expect(exitCodeOf(summary, { allowEmpty: options.allowEmpty ?? false })).toBe(code);
  });
});

describe("summarise", () => {
  const usage = {
    input_tokens: 10,
    output_tokens: 5,
    total_tokens: 15,
    cached_input_tokens: null,
    reasoning_output_tokens: null,
    cache_write_input_tokens: null,
  };
  const evidence = {
    turn_started: true,
    turn_completed: true,
    model_answered: true,
    exit_code: 0,
    signal: null,
    oom_killed: null,
    memory_limit_reached: null,
    elapsed_ms: 1,
    reconnects: 0,
    launch_error: null,
    stopped: null,
    required_tools: [],
    required_tools_missing: [],
    cleanup_error: null,
    threads: [],
    model_calls: [],
  };
  const timing = { queued_ms: 0, setup_ms: 0, run_ms: 0, collect_ms: 0 };
  const scored = { reward: 0.5 };
  const all = [
    facts(
      {
        ...COMPLETED,
        usage,
        timing: { ...timing, run_ms: 100 },
        evidence: { ...evidence, tools_called: { finish: 2, web_search: 0 }, required_tools: ["finish"] },
        ...scored,
      },
      "a",
    ),
    facts(
      {
        ...COMPLETED,
        usage: { ...usage, cached_input_tokens: 4 },
        timing: { ...timing, run_ms: 300 },
        evidence: { ...evidence, tools_called: { finish: 1 }, required_tools: ["finish"] },
      },
      "b",
    ),
    facts(STARTUP, "c"),
    facts(REFUSED, "d"),
  ];
  const summary = summarise(all, { runId: "r", total: 5, wallMs: 1234.6, interrupted: false });

  it("counts by status, failure, cause and tool, and sums usage over the sessions that report it", () => {
    expect(summary).toMatchObject({
      total: 5,
      missing: 1,
      by_status: { completed: 2, incomplete: 0, failed: 1, refused: 1, cancelled: 0 },
      by_failure_kind: { agent_run_error: 1 },
      by_cause_code: { mcp_server_unreachable: 1 },
      startup_failures: 1,
      started: 3,
      sessions_per_tool: { finish: 2 },
      required_tools: { sessions: 2, called: 2, called_more_than_once: 1 },
      rewards: { scored: 1, mean: 0.5 },
      usage: {
        sessions: 2,
        unknown_sessions: 0,
        input_tokens: 20,
        total_tokens: 30,
        cached_input_tokens: 4,
        reasoning_output_tokens: null,
        cache_write_input_tokens: null,
        untold: { cached_input_tokens: 1, reasoning_output_tokens: 2, cache_write_input_tokens: 2 },
      },
      run_ms: { p50: 200, p95: 290 },
      wall_ms: 1235,
    });
  });

  it("counts what failed, was stopped or refused, and every attempt of it; what is not known it says", () => {
    const whole = { ...usage, cached_input_tokens: 3, cache_write_input_tokens: 2, reasoning_output_tokens: 1 };
    const silent = { ...evidence, tools_called: {} };
    const open = { ...silent, threads: [{ thread_id: "t", open_model_calls: 1 } as never] };
    const attempts = [attemptOf(0, { usage: whole, evidence: open }), attemptOf(1, { evidence: silent }), attemptOf(2, { usage: whole })];
    const thrice = { ...whole, input_tokens: 30, output_tokens: 15, total_tokens: 45 };
    const ended = (["failed", "incomplete", "cancelled"] as const).map((status) => facts({ status, usage: thrice, attempts }, status));
    const { usage: told } = summarise([...ended, facts(REFUSED, "r")], { runId: "r", total: 4, wallMs: 1, interrupted: false });
    expect(told).toEqual({
      sessions: 6,
      unknown_sessions: 3,
      open_model_calls: 3,
      input_tokens: 90,
      output_tokens: 45,
      total_tokens: 135,
      cached_input_tokens: 9,
      cache_write_input_tokens: 6,
      reasoning_output_tokens: 3,
      untold: { cached_input_tokens: 0, cache_write_input_tokens: 0, reasoning_output_tokens: 0 },
    });
    expect(totalsText(told, String)).toBe(
      "90 in (9 cached, 6 written to the cache), 45 out (3 reasoning), in 6 sessions; nothing is known of 3 more sessions; " +
        "3 model calls may have been billed without a record",
    );
  });

  it("makes a table for people of it", () => {
    const table = summaryTable(summary);
    for (const text of [
      "5, 1 without a result",
      "2 completed, 1 failed, 1 refused",
      "1 mcp_server_unreachable",
      "2 finish",
      "called in 2 of 2 sessions, more than once in 1",
      "mean 0.500 over 1 scored",
      "20 in (4 cached), 10 out, in 2 sessions",
    ]) {
      expect(table).toContain(text);
    }
  });

  it("takes percentiles by one definition in summary, report and page [fault B12]", () => {
    const cases: [number[], number | null, number | null][] = [
      [[], null, null],
      [[7], 7, 7],
      [[5_000, 6_000], 5_500, 5_950],
      [[10, 20, 30], 20, 29],
      [Array.from({ length: 20 }, (_, index) => 100 * (index + 1)), 1_050, 1_905],
    ];
    for (const [times, p50, p95] of cases) {
      const ended = times.map((run_ms, index) => ({ ...facts(COMPLETED, `t${index}`), attempts: 1, timing: { run_ms } }));
      expect(summarise(ended, { runId: "r", total: ended.length, wallMs: 1, interrupted: false }).run_ms).toEqual({ p50, p95 });
      expect([spread(times).p50, spread(times).p95]).toEqual([p50, p95]);
      expect(distributionOf(times)?.p50 ?? null).toBe(p50);
    }
  });

  it.each([
    [null, "-"],
    [850, "850 ms"],
    [12_340, "12.3 s"],
    [999.6, "1.0 s"],
    [59_970, "1 min 00 s"],
    [245_000, "4 min 05 s"],
    [7_380_000, "2 h 03 min"],
    [180_000_000, "2 d 2 h"],
  ])("writes %s ms as %s, everywhere [fault B12]", (ms, text) => {
    expect(durationText(ms)).toBe(text);
  });
});

describe("progress", () => {
  const state: ProgressState = {
    total: 220,
    ended: 30,
    failed: 2,
    refused: 0,
    cancelled: 0,
    running: 4,
    endedHere: 20,
    startedAt: 0,
    breaker: null,
    pause: null,
    refusing: null,
    budget: null,
  };

  it("tells the rate of this start and the time left at that rate", () => {
    expect(progressLine(state, 600_000)).toBe("30/220 done, 2 failed, 4 running, 2.0/min, about 1 h 35 min left");
    expect(progressLine({ ...state, endedHere: 0 }, 600_000)).toBe("30/220 done, 2 failed, 4 running");
    expect(progressLine({ ...state, ended: 32, refused: 1, cancelled: 1, endedHere: 0 }, 600_000)).toBe(
      "32/220 done, 2 failed, 1 refused, 1 cancelled, 4 running",
    );
    const pause = { by: "anna\u001b", at: "", reason: "" };
    expect(progressLine({ ...state, pause }, 600_000)).toBe("30/220 done, 2 failed, 4 running, paused by anna\\u001b");
    const refusing = { server: "http://model:1", since: "2027-01-15T08:31:12.000Z", for_ms: 600_000, waiting: 7 };
    expect(progressLine({ ...state, refusing }, 600_000)).toBe(
      "30/220 done, 2 failed, 4 running, model server http://model:1 refuses since 08:31 UTC, 7 sessions wait",
    );
  });

  it("is a plain line now and then without a terminal, and a line that is redrawn on one", () => {
    const written: string[] = [];
    let now = 0;
    const sink = {
      live: false,
      line: (text: string) => written.push(`line ${text}`),
      redraw: (text: string) => written.push(`draw ${text}`),
    };
    const plain = humanReporter(sink, () => now);
    for (now = 0; now < 61_000; now += 1_000) plain.progress(state);
    expect(written.filter((text) => text.startsWith("line"))).toHaveLength(3);
    humanReporter({ ...sink, live: true }, () => now).progress(state);
    expect(written.at(-1)).toMatch(/^draw 30\/220/);
  });

  it("is data on stdout and sentences on stderr for programs", () => {
    const data: unknown[] = [];
    const lines: string[] = [];
    const reporter = jsonReporter(
      (value) => data.push(value),
      { live: false, line: (text) => lines.push(text), redraw: () => undefined },
      () => 600_000,
    );
    reporter.say("hello");
    reporter.ended(facts(STARTUP), state);
    reporter.progress(state);
    expect(lines).toEqual(["hello"]);
    expect(data).toMatchObject([
      { event: "ended", activation_id: "act-1", status: "failed", failure: { cause_code: "mcp_server_unreachable" } },
      { event: "progress", total: 220, ended: 30, per_minute: 2 },
    ]);
  });
});

describe("refusedRows", () => {
  const row = {
    ok: false as const,
    line: 17,
    taskId: "a/b",
    problems: [{ code: "input_empty", path: "input", message: "the user's text is empty", accepted: "text" }],
  };
  const options = { runId: "run-1", taskset: "tasks", repeats: 1 };
  const refusedResults = (bad: typeof row | { taskId: null }, more = options) =>
    refusedRows({ ...row, ...bad }, more).map((refused) => refusedResult("run-1", refused, new Date(0)));

  it("are whole results of the contract, with the original id and the line", () => {
    const [result] = refusedResults(row);
    expect(resultSchema.parse(result)).toMatchObject({
      status: "refused",
      task_id: { task_id: "a/b" },
      failure: {
        cause_code: "input_empty",
        status_code: 422,
        terminal: true,
        failure_reason: expect.stringMatching(/^line 17: input: the user's text is empty/) as string,
      },
    });
  });

  it("call a row without a usable id by its line, so that a duplicate does not hide the first one", () => {
    const duplicate = { ...row, problems: [{ code: "duplicate_id", path: "id", message: "", accepted: "" }] };
    expect(refusedResults(duplicate)[0]?.activation_id).toBe("act-run-1-line-17");
    expect(refusedResults({ taskId: null }, { ...options, repeats: 2 }).map(({ activation_id }) => activation_id)).toEqual([
      "act-run-1-line-17-r0",
      "act-run-1-line-17-r1",
    ]);
  });

  it("keep a long reason within the contract's limit", () => {
    const long = { ...row, problems: Array.from({ length: 100 }, () => ({ ...row.problems[0]!, message: "m".repeat(100) })) };
    expect(resultSchema.safeParse(refusedResults(long)[0]).success).toBe(true);
  });
});

it("counts a probe as begun unless its session could not be started", () => {
  expect([COMPLETED, failed("agent", "turn_failed"), REFUSED].map((result) => began(facts(result)))).toEqual([true, true, true]);
  expect([STARTUP, failed("infrastructure", "sandbox_failed")].map((result) => began(facts(result)))).toEqual([false, false]);
});
