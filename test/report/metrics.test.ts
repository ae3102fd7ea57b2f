// SPDX-License-Identifier: Apache-2.0
import { appendFile, mkdir, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { openEvidence } from "../../src/artifacts/open-evidence.ts";
import type { Usage } from "../../src/contract/response.ts";
import type { Evidence } from "../../src/contract/result.ts";
import { processIdentity } from "../../src/host/process.ts";
import { partialSentence } from "../../src/report/words.ts";
import { gatherRun } from "../../src/report/gather.ts";
import { reportMarkdown } from "../../src/report/markdown.ts";
import { errorClass } from "../../src/report/model-traffic.ts";
import { reportPage } from "../../src/report/page.ts";
import { factsOf } from "../../src/rollout/facts.ts";
import { summarise } from "../../src/rollout/summary.ts";
import { recordings, VERSIONS } from "../codex/recordings.ts";
import { tempDir } from "../support/temp-dir.ts";
import { madeResult, referenceRun, writeRun } from "./results-of.ts";

let out: string;
beforeEach(() => {
  out = tempDir();
});

const gather = (partial = false) => gatherRun(out, { partial, passThreshold: 1, openEvidence });
const metrics = async () => (await gather()).metrics;

describe("the metrics of a run", () => {
  it("are the reference run's for results of its shape: 217 finish, one twice, one message, one time-out, one kill", async () => {
    await writeRun(out, referenceRun().map(madeResult));
    const found = await metrics();
    expect(found.expected).toBe(220);
    expect(found.partial).toBe(false);
    expect(found.outcomes).toEqual({ completed: 218, incomplete: 1, failed: 1, refused: 0, cancelled: 0, missing: 0 });
    expect(found.submissions).toEqual({
      tools: ["finish"],
      by_end: {
        called: 217,
        ended_without: 1,
        limit_without: 1,
        none_required: 0,
        failed: 1,
        failed_after_call: 0,
        refused: 0,
        cancelled: 0,
        missing: 0,
      },
      called_more_than_once: 1,
      called_before_limit: 0,
    });
    expect(found.timeouts).toEqual({ wall_clock: 1, idle: 0 });
    expect(found.causes.map(({ cause, status, count }) => [cause, status, count])).toEqual([
      ["killed_by_signal", "failed", 1],
      ["required_tool_not_called", "completed", 1],
      ["wall_clock", "incomplete", 1],
    ]);
    expect(found.causes[0]!.example).toMatchObject({ activation_id: "task-219", reason: expect.stringContaining("pkill -f python3") });
    expect(found.attempts).toEqual({ total: 220, failed_by_cause: { killed_by_signal: 1 } });
    expect(found.model_calls.answered).toMatchObject({ n: 220, total: 6_001, p50: 27, max: 28 });
    expect(found.model_calls.answered.mean).toBeCloseTo(27.28, 2);
    expect(found.tokens.input.n).toBe(218);
    expect(found.tools).toMatchObject([{ tool: "finish", server: "office", rollouts: 217, calls: 218, errors: 0, timed: 218 }]);
    expect(found.rewards).toBeNull();
  });

  it("give a task causes by its own required tools, not by those of the run [fault B11]", async () => {
    const results = [
      madeResult({ id: "asked", finish: 1 }),
      madeResult({ id: "asked-without" }),
      madeResult({ id: "free", required: [] }),
      madeResult({ id: "free-limit", required: [], status: "incomplete", incomplete: "wall_clock" }),
      madeResult({ id: "free-called", required: [], finish: 1 }),
    ];
    await writeRun(out, results);
    const { causes, submissions } = await metrics();
    expect(causes.map(({ cause, count, example }) => [cause, count, example.activation_id])).toEqual([
      ["required_tool_not_called", 1, "asked-without"],
      ["wall_clock", 1, "free-limit"],
    ]);
    expect(submissions!.by_end).toMatchObject({ called: 2, ended_without: 1, limit_without: 0, none_required: 2 });
  });

  it("have every kind of tokens, of all attempts, as the summary of the same results has them; what is not known they say", async () => {
    const usage: Usage = {
      input_tokens: 500,
      output_tokens: 100,
      total_tokens: 600,
      cached_input_tokens: 50,
      cache_write_input_tokens: 7,
      reasoning_output_tokens: 20,
    };
    const results = [
      madeResult({ id: "a", finish: 1, usages: [usage, null, usage] }),
      madeResult({ id: "b", status: "failed", cause: "stream_lost", usages: [usage] }),
      madeResult({ id: "c", status: "cancelled", usages: [{ ...usage, cache_write_input_tokens: null }] }),
      madeResult({ id: "d", status: "failed", cause: "session_lost" }),
    ];
    await writeRun(out, results);
    const found = await gather();
    const { usage: told, tokens } = found.metrics;
    expect(told).toEqual(
      summarise(
        results.map((result) => factsOf(result)!),
        { runId: "r", total: 4, wallMs: 1, interrupted: false },
      ).usage,
    );
    expect(told).toMatchObject({ sessions: 4, unknown_sessions: 2, total_tokens: 2_400, cache_write_input_tokens: 21 });
    expect(Object.fromEntries(Object.entries(tokens).map(([kind, { n, total, max }]) => [kind, [n, total, max]]))).toEqual({
      input: [3, 2_000, 1_000],
      cached_input: [3, 200, 100],
      cache_write_input: [2, 21, 14],
      output: [3, 400, 200],
      reasoning_output: [3, 80, 40],
    });
    const words =
      "2,000 in (200 cached, 21 written to the cache), 400 out (80 reasoning), in 4 sessions; nothing is known of 2 more sessions";
    for (const text of [reportMarkdown(found), await reportPage(found)]) {
      expect(text).toContain(words);
      for (const row of ["tokens in", "of these cached", "of these written to the cache", "tokens out", "of these reasoning"])
        expect(text).toContain(row);
    }
  });

  it("take model calls from the evidence of all threads, where the record has it", async () => {
    const result = madeResult({ id: "a", finish: 1, modelCalls: 2 });
    const threads = [{ model_calls: 2 }, { model_calls: 3 }] as unknown as Evidence["threads"];
    const evidence = { ...result.evidence!, threads };
    await writeRun(out, [{ ...result, evidence, attempts: result.attempts.map((attempt) => ({ ...attempt, evidence })) }]);
    expect((await metrics()).model_calls.answered).toMatchObject({ n: 1, total: 5 });
  });

  it("count each activation once, by its last line, and what is missing against what was asked for", async () => {
    const first = madeResult({ id: "a", status: "failed", cause: "stream_lost" });
    await writeRun(out, [first, madeResult({ id: "b" }), { ...madeResult({ id: "a", finish: 1 }), generation: 1 }], { total: 5 });
    await appendFile(join(out, "results.jsonl"), '{"schema":"rollcall.resu');
    const found = await metrics();
    expect(found.outcomes).toMatchObject({ completed: 2, failed: 0, missing: 3 });
    expect(found.submissions!.by_end).toMatchObject({ called: 1, ended_without: 1, missing: 3 });
    expect(found).toMatchObject({ expected: 5, partial: true, expected_from: "summary.json" });
  });

  it("tell a call before a limit, and one before a failure, from those that count", async () => {
    await writeRun(out, [
      madeResult({ id: "late", finish: 1, status: "incomplete", incomplete: "idle" }),
      madeResult({ id: "broken", finish: 2, status: "failed", cause: "exit_code" }),
    ]);
    expect((await metrics()).submissions).toMatchObject({
      by_end: { called: 1, failed_after_call: 1 },
      called_before_limit: 1,
      called_more_than_once: 0,
    });
  });

  it("ask of each rollout only the tools that it had to call", async () => {
    const submitted = madeResult({ id: "b", required: ["submit"] });
    submitted.evidence = { ...submitted.evidence!, tools_called: { submit: 1 } };
    await writeRun(out, [
      madeResult({ id: "a", finish: 1 }),
      submitted,
      madeResult({ id: "c", finish: 1, required: ["finish", "submit"] }),
      madeResult({ id: "d", finish: 2, required: [] }),
    ]);
    expect((await metrics()).submissions).toMatchObject({
      tools: ["finish", "submit"],
      by_end: { called: 3, ended_without: 1 },
      called_more_than_once: 1,
    });
  });

  it("state what rewards are over: scored rollouts by task, and all expected", async () => {
    await writeRun(
      out,
      [
        madeResult({ id: "a-r0", task: "a", reward: 1 }),
        madeResult({ id: "a-r1", task: "a", reward: 0 }),
        madeResult({ id: "b-r0", task: "b", reward: 1 }),
        madeResult({ id: "b-r1", task: "b", reward: 1 }),
        madeResult({ id: "c-r0", task: "c" }),
        madeResult({ id: "c-r1", task: "c", status: "failed", cause: "unknown" }),
      ],
      { total: 6 },
    );
    const { rewards } = await metrics();
    expect(rewards).toMatchObject({ scored: 4, tasks: 2, unscored_gradable: 1, mean_of_expected: 0.5, pass_threshold: 1 });
    expect(rewards!.mean_of_scored).toMatchObject({ value: 0.75, n: 2 });
    expect(rewards!.pass.map(({ k, pass_at_k, pass_hat_k }) => [k, pass_at_k.value, pass_hat_k.value])).toEqual([
      [1, 0.75, 0.75],
      [2, 1, 0.5],
    ]);
  });

  it("count calls, errors and time of each tool over all attempts", async () => {
    const tools = [
      { tool_name: "fetch", server_name: "web", duration_ms: 100 },
      { tool_name: "fetch", server_name: "web", duration_ms: 300, status: "failed" as const },
      { tool_name: "fetch", server_name: "web", duration_ms: null, status: "timeout" as const },
      { tool_name: "fetch", server_name: "other", duration_ms: 7 },
    ];
    await writeRun(out, [madeResult({ id: "a", tools })]);
    expect((await metrics()).tools).toMatchObject([
      { tool: "fetch", server: "web", calls: 3, errors: 2, timed: 2, total_ms: 400, p50_ms: 200 },
      { tool: "fetch", server: "other", calls: 1, errors: 0, total_ms: 7 },
    ]);
  });

  it("take model calls from the transcript, and errors from the events, where the result does not tell them", async () => {
    const result = madeResult({ id: "a", status: "failed", cause: "turn_failed" });
    await writeRun(out, [result, madeResult({ id: "b" })]);
    const attempt = join(out, "artifacts", "a", "attempt-0");
    await mkdir(attempt, { recursive: true });
    const counted = [1, 1, 2].map((calls) => ({
      type: "event_msg",
      payload: { type: "token_count", info: { total_token_usage: { input_tokens: 10 * calls, output_tokens: calls } } },
    }));
    // Codex 0.144.4 counts the tokens of an answer when its tool has ended: this one's had not.
    const running = { type: "response_item", payload: { type: "function_call", call_id: "c", name: "exec_command", arguments: "{}" } };
    const transcript = [...counted, running].map((record) => `${JSON.stringify(record)}\n`).join("");
    await writeFile(join(attempt, "transcript.jsonl"), transcript);
    const events = [
      "Reconnecting... 1/5 (unexpected status 401 Unauthorized: no, url: http://m/v1)",
      "Codex ran out of room in the model's context window.",
    ];
    await writeFile(
      join(attempt, "events.jsonl"),
      events.map((message) => `${JSON.stringify([1.5, { type: "error", message }])}\n`).join(""),
    );
    const { model_calls } = await metrics();
    expect(model_calls.answered).toMatchObject({ n: 1, total: 3 });
    expect(model_calls).toMatchObject({
      unknown_rollouts: 1,
      by_status: { "200": 3, "401": 1, context_length: 1 },
      context_length_errors: 1,
      errors_unknown_rollouts: 0,
    });
  });
});

describe("errors of the model server", () => {
  it.each([
    ["400", { "400": 1 }],
    ["400-context", { context_length: 1 }],
    ["response-failed-context", { context_length: 1 }],
    ["401", { "401": 6 }],
    ["403-html", { "403": 6 }],
    ["429", { "429": 1 }],
    ["500", { "5xx": 6 }],
    ["stream-cut", { cut_off: 6 }],
  ])("of a recorded %s are told as they were, by both Codex versions", (name, expected) => {
    for (const version of VERSIONS) {
      const classes: Record<string, number> = {};
      for (const line of recordings(version, "provider")[name]!.stdout.split("\n")) {
        const event = (line === "" ? {} : JSON.parse(line)) as { type?: string; message?: string };
        if (event.type !== "error") continue;
        const found = errorClass(event.message!);
        classes[found] = (classes[found] ?? 0) + 1;
      }
      expect(classes).toEqual(expected);
    }
  });
});

it("a run that its budget ended says so, and how many rollouts were not started [E17]", async () => {
  await writeRun(out, [madeResult({ id: "a", finish: 1 })], { total: 4, budget: { stopped_by: "max_tokens" } });
  const { metrics } = await gather();
  expect(partialSentence(metrics)).toBe("The run's budget is spent (max_tokens): 3 of 4 (75.0 %) rollouts were not started.");
  expect(partialSentence({ ...metrics, stopped_by: null })).toContain("have no result yet");
});

describe("a directory that cannot be reported on", () => {
  it("is refused with what to do", async () => {
    await expect(gather()).rejects.toMatchObject({ code: "out_empty", message: expect.stringContaining("manifest.json") });
    await expect(gatherRun(join(out, "no"), { partial: false, passThreshold: 1, openEvidence })).rejects.toMatchObject({
      code: "out_unknown",
    });
    await writeFile(join(out, "manifest.json"), "{}");
    await expect(gather()).rejects.toMatchObject({ code: "out_foreign" });
  });

  it("is one that a living process still works on, unless a partial report is wanted; a dead one's lock is none", async () => {
    await writeRun(out, [madeResult({ id: "a", finish: 1 })], { total: 3 });
    await writeFile(join(out, ".lock"), JSON.stringify(processIdentity()));
    await expect(gather()).rejects.toMatchObject({ code: "out_running", message: expect.stringContaining("--partial") });
    expect((await gather(true)).metrics).toMatchObject({ partial: true, outcomes: { completed: 1 } });
    await writeFile(join(out, ".lock"), JSON.stringify({ pid: process.pid, start_time: "1", boot_id: "x", host: hostname() }));
    expect((await gather()).metrics.expected).toBe(3);
  });
});
