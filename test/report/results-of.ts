// SPDX-License-Identifier: Apache-2.0
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { ObservationBundle, ToolCallRecord } from "../../src/contract/observation.ts";
import type { ResponseItem, Usage } from "../../src/contract/response.ts";
import type { ActivationResult, Evidence } from "../../src/contract/result.ts";
import { usageOfAttempts } from "../../src/contract/usage.ts";
import { attemptOf, resultOf } from "../support/result-documents.ts";

export interface Made {
  id: string;
  task?: string;
  status?: ActivationResult["status"];
  incomplete?: ActivationResult["incomplete_cause"];
  cause?: string;
  reason?: string;
  /** Successful calls of `finish`. */
  finish?: number;
  required?: string[];
  modelCalls?: number;
  tools?: Partial<ToolCallRecord>[];
  tokens?: number;
  /** Of all attempts together, in place of `tokens`; all but the last attempt are failed ones of this usage. */
  usages?: (Usage | null)[];
  runMs?: number;
  reward?: number;
  conversation?: ResponseItem[];
}

/** A result as the workers make them, of what matters to a test. */
export function madeResult(made: Made): ActivationResult {
  const { id, task = id, status = "completed", incomplete = null, finish = 0, required = ["finish"], tokens, runMs = 1_000 } = made;
  const failure = made.cause === undefined ? null : failureOf(made.cause, made.reason ?? "it broke");
  const evidence: Evidence = {
    turn_started: true,
    turn_completed: status === "completed",
    model_answered: true,
    exit_code: 0,
    signal: null,
    oom_killed: null,
    memory_limit_reached: null,
    launch_error: null,
    stopped: null,
    elapsed_ms: runMs,
    reconnects: 0,
    tools_called: finish > 0 ? { finish } : {},
    required_tools: required,
    required_tools_missing: finish > 0 ? [] : required,
    cleanup_error: null,
    threads: [],
    model_calls: [],
  };
  const conversation = made.conversation ?? [];
  const observations = observationsOf(made, conversation);
  const single = tokens === undefined ? null : { ...NO_USAGE, input_tokens: tokens, output_tokens: 10, total_tokens: tokens + 10 };
  const usages = made.usages ?? [single];
  const usage = usages.at(-1)!;
  const earlier = { evidence, failure: failureOf("stream_lost", "cut") };
  const isGradable = status === "completed" || status === "incomplete";
  const ending = { status, failure, incomplete_cause: incomplete, evidence, observations };
  return resultOf(id, {
    episode_id: { rollout_id: id, attempt: usages.length - 1 },
    capture_key: id,
    task_id: { taskset: "tasks", task_id: task },
    ...ending,
    response: isGradable ? { ...RESPONSE, status, output: conversation, usage } : null,
    attempts: usages.map((usage, at) => attemptOf(at, { capture_key: id, ...(at === usages.length - 1 ? ending : earlier), usage })),
    usage: usageOfAttempts(usages.map((usage) => ({ usage }))),
    timing: { queued_ms: 0, setup_ms: 0, run_ms: runMs, collect_ms: 0 },
    ...(made.reward === undefined ? {} : { reward: made.reward }),
  });
}

const NO_USAGE = { cached_input_tokens: null, reasoning_output_tokens: null, cache_write_input_tokens: null };
const RESPONSE = {
  id: "resp_00",
  object: "response" as const,
  created_at: 1,
  model: "gpt-5.5",
  error: null,
  incomplete_details: null,
  metadata: {},
  parallel_tool_calls: true as const,
  tool_choice: "auto" as const,
  tools: [],
};

function failureOf(cause_code: string, failure_reason: string): ActivationResult["failure"] {
  return {
    failure_kind: "agent_run_error",
    cause_code,
    server_names: [],
    stage: "agent",
    failure_reason,
    terminal: false,
    status_code: 502,
  };
}

function observationsOf({ id, finish = 0, tools, modelCalls, runMs = 1_000 }: Made, conversation: ResponseItem[]): ObservationBundle {
  const calls = tools ?? Array.from({ length: finish }, () => ({ tool_name: "finish", server_name: "office", duration_ms: 20 }));
  return {
    source: "codex",
    records: [
      {
        kind: "agent_invocation",
        invocation_id: id,
        status: "completed",
        duration_ms: runMs,
        error_type: null,
        model_calls: Array.from({ length: modelCalls ?? 0 }, (_, at) => ({ response_id: `resp_${at}` })),
        conversation,
      },
      ...calls.map((call, at) => ({
        kind: "tool_call" as const,
        invocation_id: id,
        tool_call_id: `call_${at}`,
        tool_name: "exec_command",
        started_at: "2026-04-01T10:00:01.000Z",
        completed_at: "2026-04-01T10:00:02.000Z",
        duration_ms: 1_000,
        timing_source: "artifact" as const,
        status: "completed" as const,
        error_type: null,
        ...call,
      })),
    ],
    gaps: modelCalls === undefined ? [{ code: "model_call_join_key_unavailable", invocation_id: id }] : [],
  };
}

/** The results of the reference run: 217 finish, one of them twice, one ends with a message, one times out, one is killed; 6,001 model calls. */
export function referenceRun(): Made[] {
  return Array.from({ length: 220 }, (_, at) => {
    const id = `task-${String(at).padStart(3, "0")}`;
    const modelCalls = at < 61 ? 28 : 27; // 61 x 28 + 159 x 27 = 6,001
    if (at < 217) return { id, finish: at === 7 ? 2 : 1, modelCalls, tokens: 1_000 + at };
    if (at === 217) return { id, modelCalls, tokens: 900 };
    if (at === 218) return { id, modelCalls, status: "incomplete", incomplete: "wall_clock", runMs: 3_600_000 };
    return {
      id,
      modelCalls,
      status: "failed",
      cause: "killed_by_signal",
      reason: "Codex was killed by SIGTERM while `pkill -f python3` ran",
    };
  });
}

/** Writes an output directory with these results. */
export async function writeRun(
  path: string,
  results: readonly ActivationResult[],
  {
    total = results.length,
    runId = "run-1",
    settings = {},
    budget = { stopped_by: null },
  }: { total?: number; runId?: string; settings?: Record<string, string>; budget?: { stopped_by: string | null } } = {},
): Promise<void> {
  await mkdir(path, { recursive: true });
  const manifest = {
    schema: "rollcall.manifest/1",
    run_id: runId,
    created_at: "2026-04-01T10:00:00.000Z",
    tasks: { path: "tasks.jsonl", sha256: "0".repeat(64) },
    settings,
    versions: {},
  };
  await writeFile(join(path, "manifest.json"), JSON.stringify(manifest));
  await writeFile(join(path, "summary.json"), JSON.stringify({ total, interrupted: false, budget }));
  await writeFile(join(path, "results.jsonl"), results.map((result) => `${JSON.stringify(result)}\n`).join(""));
  const failed = results.flatMap(({ attempts }) => attempts.filter(({ failure }) => failure !== null));
  await writeFile(join(path, "failures.jsonl"), failed.map((attempt) => `${JSON.stringify(attempt)}\n`).join(""));
}

/** Results whose ids, tools and reasons try to be markup, code or another direction of writing, and are long. */
export function hostileRun(): Made[] {
  const script = "<script>alert(1)</script>";
  const long = "x".repeat(200);
  const tools = [
    { tool_name: script, server_name: "\u202eevil" },
    { tool_name: long, status: "failed" as const },
  ];
  return [
    { id: `a-${script}`, task: script, finish: 1, reward: 1, tools, modelCalls: 3, runMs: 5_000 },
    { id: "b", task: "\u202eمرحبا\u202c", finish: 1, reward: 0.25, modelCalls: 9, runMs: 90_000 },
    { id: long, task: long, status: "failed", cause: "sandbox_failed", reason: `<img src=x onerror=alert(1)>\n| ${"word ".repeat(80)}` },
    { id: `d "quoted" 'id' &amp;`, task: "`d` *e* [f](http://g) \\| h", status: "incomplete", incomplete: "wall_clock", modelCalls: 1 },
  ];
}
