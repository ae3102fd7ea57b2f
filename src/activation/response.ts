// SPDX-License-Identifier: Apache-2.0
import type { SessionFacts } from "../codex/session.ts";
import type { Response } from "../contract/response.ts";
import type { Evidence, WorkerInfo } from "../contract/result.ts";
import type { AttemptContext } from "./attempt.ts";
import type { Outcome } from "./classify.ts";
import type { ConcludedSession } from "./conclude.ts";
import { modelCallsOf } from "./model-calls.ts";

/**
 * The Responses API object of a session that is gradable, or that somebody ended in its turn: then what it came to, as
 * incomplete. null for any other. Pure; facts are redacted.
 */
export function responseOf(
  context: AttemptContext,
  outcome: Outcome,
  facts: SessionFacts,
  { host, codex_version }: WorkerInfo,
): Response | null {
  const partial = outcome.status === "cancelled" && facts.turnStarted;
  if (outcome.status !== "completed" && outcome.status !== "incomplete" && !partial) return null;
  return {
    id: `resp_${context.sandbox_id}`,
    object: "response",
    created_at: Math.floor(context.started_at.getTime() / 1000),
    model: context.activation.model.name ?? "codex-default",
    status: outcome.status === "completed" ? "completed" : "incomplete",
    error: null,
    incomplete_details: outcome.incomplete_cause === "max_output_tokens" ? { reason: "max_output_tokens" } : null,
    output: facts.items,
    usage: facts.usage,
    metadata: { harness_execution: "sandbox", harness_hostname: host, codex_version: codex_version ?? "unknown" },
    parallel_tool_calls: true,
    tool_choice: "auto",
    tools: [],
  };
}

/**
 * Required tools that no call reached: a call whose end Codex did not wait for, or did not live to see, may have been served
 * (seen: a finish that timed out for the model and was executed), so its tool is not called missing.
 */
export function requiredToolsMissing(facts: SessionFacts, requiredTools: readonly string[]): string[] {
  const maybeServed = new Set(
    facts.toolCalls.flatMap((call) => (call.status === "timeout" || call.status === "incomplete" ? call.tool_name : [])),
  );
  return requiredTools.filter((tool) => (facts.toolsCalled[tool] ?? 0) === 0 && !maybeServed.has(tool));
}

/** The facts behind an outcome. Pure; everything given is redacted. */
export function evidenceOf(
  observed: Pick<ConcludedSession, "facts" | "native" | "exit" | "stopped" | "memory"> & {
    elapsed_ms: number;
    requiredTools: readonly string[];
  },
  cleanup_error: string | null,
): Evidence {
  const { facts, native, exit, stopped, memory, elapsed_ms, requiredTools } = observed;
  return {
    turn_started: facts.turnStarted,
    turn_completed: facts.turnCompleted,
    model_answered: facts.modelAnswered,
    exit_code: exit.started ? exit.code : null,
    signal: exit.started ? exit.signal : null,
    ...memory,
    ...(exit.started && exit.outside === true ? { killed_from_outside: true } : {}),
    launch_error: exit.started ? null : exit.detail,
    stopped,
    elapsed_ms: Math.round(elapsed_ms),
    reconnects: facts.reconnects,
    tools_called: facts.toolsCalled,
    required_tools: [...requiredTools],
    required_tools_missing: requiredToolsMissing(facts, requiredTools),
    cleanup_error,
    ...modelCallsOf(native.threads),
  };
}
