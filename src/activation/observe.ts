// SPDX-License-Identifier: Apache-2.0
import { sessionGaps } from "../codex/gaps.ts";
import type { SessionFacts } from "../codex/session.ts";
import type { SessionEnd, Verdict } from "../codex/verdict.ts";
import type { ObservationBundle, ObservationGap, ObservationRecord, ToolCallRecord } from "../contract/observation.ts";
import type { ResponseItem } from "../contract/response.ts";
import { redactText, type SecretSet } from "../redact/index.ts";
import type { SandboxExit, SandboxUsage } from "../sandbox/types.ts";
import type { Outcome } from "./classify.ts";

/** What the events said, every free text of it redacted. Ids and enumerated words stay as they are, so it stays valid. */
export function redactFacts(secrets: SecretSet, facts: SessionFacts): SessionFacts {
  const text = (value: string): string => redactText(secrets, value);
  return {
    ...facts,
    items: facts.items.map((item) => redactItem(item, text)),
    toolCalls: facts.toolCalls.map((call) => redactCall(call, text)),
    toolsCalled: Object.fromEntries(Object.entries(facts.toolsCalled).map(([name, count]) => [text(name), count])),
    turnFailures: facts.turnFailures.map(text),
    errors: facts.errors.map(text),
    advisories: facts.advisories.map((advisory) => ({ ...advisory, text: text(advisory.text) })),
  };
}

function redactItem(item: ResponseItem, text: (value: string) => string): ResponseItem {
  switch (item.type) {
    case "message":
      return { ...item, content: item.content.map((part) => ({ ...part, text: text(part.text) })) };
    case "reasoning":
      return { ...item, summary: item.summary.map((part) => ({ ...part, text: text(part.text) })) };
    case "function_call":
      return { ...item, name: text(item.name), arguments: text(item.arguments) };
    case "function_call_output":
      return { ...item, output: text(item.output) };
    default:
      return item satisfies never;
  }
}

function redactCall(call: ToolCallRecord, text: (value: string) => string): ToolCallRecord {
  return {
    ...call,
    tool_name: text(call.tool_name),
    ...(call.server_name === undefined ? {} : { server_name: text(call.server_name) }),
    error_type: call.error_type === null ? null : text(call.error_type),
  };
}

export interface Observed {
  invocation_id: string;
  facts: SessionFacts;
  verdict: Verdict;
  end: SessionEnd;
  exit: SandboxExit;
  outcome: Outcome;
  provider: string;
  usage: SandboxUsage;
  elapsed_ms: number;
  /** Gaps of other stages: skipped grants, artifacts. */
  gaps: readonly ObservationGap[];
}

/** The bundle of an attempt in which Codex was launched. Pure; everything given is redacted. */
export function observe(observed: Observed): ObservationBundle {
  const { facts, verdict, end, invocation_id, outcome } = observed;
  return {
    source: "codex",
    records: [invocationRecord(observed), ...facts.toolCalls, sandboxRecord(observed)],
    gaps: [
      ...observed.gaps,
      ...sessionGaps(facts, verdict, end, invocation_id),
      ...startupGap(observed),
      ...interruptedGap(outcome, invocation_id),
    ],
  };
}

/** Exactly one, with the very text of the failure: environments keep the observations, not the error. */
function startupGap({ verdict, outcome, invocation_id, exit }: Observed): ObservationGap[] {
  if (verdict.kind !== "startup_failed" || outcome.status !== "failed" || !exit.started || outcome.failure === null) return [];
  if (outcome.failure.failure_kind !== "agent_run_error") return [];
  return [{ code: "agent_startup_failed", invocation_id, detail: outcome.failure.failure_reason }];
}

function interruptedGap(outcome: Outcome, invocation_id: string): ObservationGap[] {
  const kind = outcome.failure?.failure_kind;
  return kind === "cancelled" || kind === "shutdown" ? [{ code: "agent_activation_interrupted", invocation_id, detail: kind }] : [];
}

function invocationRecord({ invocation_id, facts, verdict, outcome, elapsed_ms }: Observed): ObservationRecord {
  return {
    kind: "agent_invocation",
    invocation_id,
    status: verdict.kind === "completed" || verdict.kind === "incomplete" ? verdict.kind : "failed",
    duration_ms: Math.round(elapsed_ms),
    error_type: outcome.failure?.cause_code ?? null,
    model_calls: [],
    conversation: facts.items,
  };
}

function sandboxRecord({ exit, outcome, provider, usage }: Observed): ObservationRecord {
  return {
    kind: "sandbox",
    role: "agent",
    provider,
    outcome: sandboxOutcome(exit, outcome),
    exit_code: exit.started ? exit.code : null,
    signal: exit.started ? exit.signal : null,
    wall_ms: Math.round(usage.wall_ms),
    cpu_ms: usage.cpu_ms === null ? null : Math.round(usage.cpu_ms),
    peak_memory_bytes: usage.peak_memory_bytes,
  };
}

function sandboxOutcome(exit: SandboxExit, outcome: Outcome): "completed" | "failed" | "timeout" | "sandbox_error" | "cancelled" {
  if (!exit.started) return "sandbox_error";
  if (outcome.status === "cancelled") return "cancelled";
  if (outcome.incomplete_cause === "wall_clock") return "timeout";
  return exit.code === 0 ? "completed" : "failed";
}

/** The bundle of an attempt that ended before Codex was launched. */
export function nothingObserved(invocation_id: string, outcome: Outcome, gaps: readonly ObservationGap[]): ObservationBundle {
  const kind = outcome.failure?.failure_kind;
  const code = kind === "cancelled" || kind === "shutdown" ? "agent_activation_interrupted" : "harness_not_run";
  const detail = outcome.failure?.failure_reason;
  return { source: "codex", records: [], gaps: [...gaps, { code, invocation_id, ...(detail === undefined ? {} : { detail }) }] };
}
