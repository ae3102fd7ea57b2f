// SPDX-License-Identifier: Apache-2.0
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { ActivationResult, Attempt } from "../../src/contract/result.ts";
import type { ObservationRecord } from "../../src/contract/observation.ts";

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
  tools?: Partial<Extract<ObservationRecord, { kind: "tool_call" }>>[];
  tokens?: number;
  runMs?: number;
  reward?: number;
  conversation?: Extract<ObservationRecord, { kind: "agent_invocation" }>["conversation"];
}

/** A result as the workers make them, of what matters to a test. */
export function resultOf(made: Made): ActivationResult & { reward?: number } {
  const { id, task = id, status = "completed", incomplete = null, finish = 0, required = ["finish"], tokens, runMs = 1_000 } = made;
  const failure =
    made.cause === undefined
      ? null
      : {
          failure_kind: "agent_run_error" as const,
          cause_code: made.cause,
          server_names: [],
          stage: "agent" as const,
          failure_reason: made.reason ?? "it broke",
          terminal: false,
          status_code: 502,
        };
  const evidence = {
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
  };
  const calls = made.tools ?? Array.from({ length: finish }, () => ({ tool_name: "finish", server_name: "office", duration_ms: 20 }));
  const conversation = made.conversation ?? [];
  const observations: Attempt["observations"] = {
    source: "codex",
    records: [
      {
        kind: "agent_invocation",
        invocation_id: id,
        status: "completed",
        duration_ms: runMs,
        error_type: null,
        model_calls: Array.from({ length: made.modelCalls ?? 0 }, (_, at) => ({ response_id: `resp_${at}` })),
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
    gaps: made.modelCalls === undefined ? [{ code: "model_call_join_key_unavailable", invocation_id: id }] : [],
  };
  const worker = { id: "w", host: "h", version: "0.1.0", codex_version: "0.144.4", sandbox_provider: "bubblewrap" };
  const usage =
    tokens === undefined
      ? null
      : {
          input_tokens: tokens,
          output_tokens: 10,
          total_tokens: tokens + 10,
          cached_input_tokens: null,
          reasoning_output_tokens: null,
        };
  return {
    schema: "rollcall.result/1",
    activation_id: id,
    run_id: "run-1",
    generation: 0,
    agent_session_id: null,
    episode_id: { rollout_id: id, attempt: 0 },
    capture_key: id,
    task_id: { taskset: "tasks", task_id: task },
    status,
    response:
      status === "completed" || status === "incomplete"
        ? {
            id: "resp_00",
            object: "response",
            created_at: 1,
            model: "gpt-5.5",
            status,
            error: null,
            incomplete_details: null,
            output: conversation,
            usage,
            metadata: {},
            parallel_tool_calls: true,
            tool_choice: "auto",
            tools: [],
          }
        : null,
    failure,
    incomplete_cause: incomplete,
    cause_class: null,
    evidence,
    observations,
    attempts: [
      {
        attempt: 0,
        capture_key: id,
        worker,
        started_at: "2026-04-01T10:00:00.000Z",
        ended_at: "2026-04-01T10:00:09.000Z",
        status,
        incomplete_cause: incomplete,
        cause_class: null,
        charged: true,
        failure,
        grants: [],
        evidence,
        observations,
      },
    ],
    artifacts: [],
    usage,
    timing: { queued_ms: 0, setup_ms: 0, run_ms: runMs, collect_ms: 0 },
    worker,
    ended_at: "2026-04-01T10:00:09.000Z",
    metadata: {},
    ...(made.reward === undefined ? {} : { reward: made.reward }),
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
  results: readonly (ActivationResult & { reward?: number })[],
  { total = results.length, runId = "run-1", settings = {} }: { total?: number; runId?: string; settings?: Record<string, string> } = {},
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
  await writeFile(join(path, "summary.json"), JSON.stringify({ total, interrupted: false }));
  await writeFile(join(path, "results.jsonl"), results.map((result) => `${JSON.stringify(result)}\n`).join(""));
  const failed = results.flatMap(({ attempts }) => attempts.filter(({ failure }) => failure !== null));
  await writeFile(join(path, "failures.jsonl"), failed.map((attempt) => `${JSON.stringify(attempt)}\n`).join(""));
}
