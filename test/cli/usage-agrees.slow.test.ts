// SPDX-License-Identifier: Apache-2.0
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished, vi } from "vitest";
import { startModelServer } from "../../examples/stand-ins/model-server.ts";
import { say, shell, step, withFault } from "../../examples/stand-ins/script.ts";
import type { EndedRow } from "../../src/queue/run-rows.ts";
import type { Story } from "../../src/api/story.ts";
import type { RunReply } from "../../src/api/run-view.ts";
import type { ActivationResult } from "../../src/contract/result.ts";
import type { Explanation } from "../../src/activation/explain.ts";
import type { Metrics } from "../../src/report/metrics.ts";
import type { Summary } from "../../src/rollout/summary.ts";
import { rollcall, startRollcall } from "../support/rollcall-command.ts";
import { tempDir } from "../support/temp-dir.ts";

const WAIT = { timeout: 90_000, interval: 100 };
/** Of every answer of the model. */
const ANSWER = { input_tokens: 500, cached_input_tokens: 50, output_tokens: 100, reasoning_output_tokens: 20 };
/** Answers by task: each attempt of the one gets one and dies at the second call; the other's third attempt gets both. */
const ANSWERS = { fails: 3, recovers: 4 };

it("results, summary, budget, report, explain, run page and activation page tell the same tokens of attempts that failed, and the model server sent as many", async () => {
  const root = tempDir();
  const at = (name: string): string => join(root, name);
  mkdirSync(at("run"), { mode: 0o700 });
  const model = await startModelServer({
    apiKey: "k",
    usage: ANSWER,
    scriptFor: ({ prompt, attempt }) => {
      const last = step(say("Done."));
      const dies = prompt.includes("fails") || attempt < 2;
      return {
        steps: [
          step(shell("echo hello")),
          dies ? withFault(last, { kind: "status", status: 400, body: '{"error":{"message":"no"}}' }) : last,
        ],
      };
    },
  });
  onTestFinished(() => model.close());
  writeFileSync(at("rollcall.toml"), "[retry]\nbase_seconds = 0.1\n");
  writeFileSync(at("tasks.jsonl"), ["fails", "recovers"].map((id) => `${JSON.stringify({ id, input: id })}\n`).join(""));
  const env = {
    ROLLCALL_CONFIG: at("rollcall.toml"),
    OPENAI_API_KEY: "k",
    ROLLCALL_MODEL_BASE_URL: model.captureBaseUrl,
    XDG_STATE_HOME: at("state"),
    XDG_RUNTIME_DIR: at("run"),
    TMPDIR: root,
  };
  const serve = startRollcall(["serve", "--out", at("served"), "--port", "0", "--workers", "1", "--concurrency", "2"], { env });
  onTestFinished(async () => {
    serve.child.kill("SIGTERM");
    await serve.ended;
  });
  const server = await vi.waitFor(() => {
    const found = /listening on (\S+)/.exec(serve.stdout())?.[1];
    expect(found, serve.stderr()).toBeDefined();
    return found!;
  }, WAIT);
  const asked = async (path: string): Promise<string> => {
    const key = readFileSync(at("state/rollcall/api-key"), "utf8").trim();
    const response = await fetch(`${server}/v1/${path}`, { headers: { authorization: `Bearer ${key}` } });
    expect(response.status, path).toBe(200);
    return response.text();
  };
  const command = async (...words: string[]): Promise<string> => {
    const ended = await rollcall(words, { env });
    expect(ended, ended.stderr).toMatchObject({ code: 0 });
    return ended.stdout;
  };

  const where = ["--out", at("out"), "--server", server];
  const limits = ["--max-tokens", "1000000", "--probe", "0"];
  const ended = await rollcall(
    ["run", at("tasks.jsonl"), ...where, ...limits, "--model", "stand-in", "--model-base-url", model.captureBaseUrl],
    { env },
  );
  expect(ended, ended.stderr).toMatchObject({ code: 1 });
  expect(model.log.requests().filter(({ played }) => played === "reply")).toHaveLength(ANSWERS.fails + ANSWERS.recovers);

  const lines = readFileSync(at("out/results.jsonl"), "utf8").trim().split("\n");
  const results = lines.map((line) => JSON.parse(line) as ActivationResult);
  const of = (task: keyof typeof ANSWERS): ActivationResult => results.find(({ task_id }) => task_id.task_id === task)!;
  const told = (["fails", "recovers"] as const).map((task) => {
    const { status, usage, attempts, response } = of(task);
    return { status, usage, attempts: attempts.map((attempt) => attempt.usage), response: response?.usage ?? null };
  });
  expect(told).toEqual([
    { status: "failed", usage: answers(3), attempts: [answers(1), answers(1), answers(1)], response: null },
    { status: "completed", usage: answers(4), attempts: [answers(1), answers(1), answers(2)], response: answers(2) },
  ]);

  const all = answers(7);
  const totals = { ...all, sessions: 6, unknown_sessions: 0 };
  const summary = JSON.parse(readFileSync(at("out/summary.json"), "utf8")) as Summary;
  expect(summary.usage).toMatchObject(totals);
  expect(ended.stdout).toMatch(/model usage\s+│ 3,500 in \(350 cached\), 700 out \(140 reasoning\), in 6 sessions/);
  const used = { model_calls: 7, tokens: all.total_tokens };
  expect(summary.budget?.used).toMatchObject(used);

  const metrics = JSON.parse(await command("report", at("out"), "--json")) as Metrics;
  expect(metrics.usage).toEqual(summary.usage);
  expect(metrics.tokens.input).toMatchObject({ n: 2, total: all.input_tokens });

  const runId = results[0]!.run_id;
  const { budget } = JSON.parse(await asked(`runs/${runId}`)) as RunReply;
  expect(budget).toMatchObject({ max_tokens: 1_000_000, used });
  expect(await command("status", runId, "--server", server)).toContain("4,200 of 1,000,000 tokens used");
  const rows = (await asked(`runs/${runId}/rows?limit=10`)).trim().split("\n");
  const byTask = Object.fromEntries(
    rows.map((row) => JSON.parse(row) as EndedRow).map(({ task, tokens, usage }) => [task, { tokens, usage }]),
  );
  expect(Object.values(byTask)).toHaveLength(2);
  for (const task of ["fails", "recovers"] as const) {
    const { activation_id, usage } = of(task);
    expect(Object.entries(byTask).find(([name]) => name.endsWith(`/${task}`))?.[1]).toEqual({ tokens: usage!.total_tokens, usage });
    const story = JSON.parse(await asked(`activations/${activation_id}/story`)) as Story;
    expect([story.usage, story.attempts.map((attempt) => attempt.usage)]).toEqual([
      usage,
      of(task).attempts.map((attempt) => attempt.usage),
    ]);
    const explained = JSON.parse(await command("explain", activation_id, "--out", at("out"), "--json")) as Explanation;
    expect(explained.usage).toEqual(usage);
    const calls = explained.attempts.flatMap(({ evidence }) => evidence!.model_calls);
    expect(calls.map(({ tokens }) => tokens)).toEqual(
      calls.map(() => ({ ...ANSWER, cache_write_input_tokens: calls[0]!.tokens.cache_write_input_tokens })),
    );
    expect(calls).toHaveLength(ANSWERS[task]);
    expect(explained.attempts.flatMap(({ evidence }) => evidence!.threads.map(({ model_calls }) => model_calls))).toEqual(
      explained.attempts.map((attempt) => attempt.usage!.total_tokens / answers(1).total_tokens),
    );
  }
}, 400_000);

function answers(count: number): ActivationResult["usage"] & object {
  const { input_tokens, cached_input_tokens, output_tokens, reasoning_output_tokens } = ANSWER;
  return {
    input_tokens: count * input_tokens,
    output_tokens: count * output_tokens,
    total_tokens: count * (input_tokens + output_tokens),
    cached_input_tokens: count * cached_input_tokens,
    reasoning_output_tokens: count * reasoning_output_tokens,
    cache_write_input_tokens: null,
  };
}
