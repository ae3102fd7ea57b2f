// SPDX-License-Identifier: Apache-2.0
import { sessionGaps } from "../codex/gaps.ts";
import type { SessionFacts } from "../codex/session.ts";
import type { JoinedSession } from "../codex/transcript-join.ts";
import type { SessionEnd, Verdict } from "../codex/verdict.ts";
import type { ObservationBundle, ObservationGap, ObservationRecord, ToolCallRecord } from "../contract/observation.ts";
import type { ResponseItem } from "../contract/response.ts";
import type { JoinedThread } from "../codex/joined-threads.ts";
import { redactValue, type SecretSet } from "../redact/index.ts";
import type { SandboxExit, SandboxUsage } from "../sandbox/types.ts";
import type { Outcome } from "./classify.ts";
import { requiredToolsMissing } from "./response.ts";

/**
 * What the events said, every free text of it redacted, and call ids, which the model's server may choose. Items' own ids and
 * enumerated words stay as they are, so it stays valid.
 */
export function redactFacts(secrets: SecretSet, facts: SessionFacts): SessionFacts {
  // As structured data: a header's value "1" must not take every 1 out of what the model said.
  const text = (value: string): string => redactValue(secrets, value);
  return {
    ...facts,
    items: facts.items.map((item) => redactItem(item, text)),
    toolCalls: facts.toolCalls.map((call) => redactCall(call, text)),
    toolStartsMissing: facts.toolStartsMissing.map(text),
    toolsCalled: Object.fromEntries(Object.entries(facts.toolsCalled).map(([name, count]) => [text(name), count])),
    turnFailures: facts.turnFailures.map(text),
    errors: facts.errors.map(text),
    streamTrouble: facts.streamTrouble === null ? null : text(facts.streamTrouble),
    advisories: facts.advisories.map((advisory) => ({ ...advisory, text: text(advisory.text) })),
  };
}

/** The same for what the transcripts say of a thread; its id is one that names a file of Codex's. */
export function redactThread(secrets: SecretSet, thread: JoinedThread): JoinedThread {
  const text = (value: string): string => redactValue(secrets, value);
  const orNull = (value: string | null): string | null => (value === null ? null : text(value));
  return {
    ...thread,
    agent_path: orNull(thread.agent_path),
    spawned_by_tool_call_id: orNull(thread.spawned_by_tool_call_id),
    modelCalls: thread.modelCalls.map((call) => ({ ...call, response_id: orNull(call.response_id) })),
    toolCalls: thread.toolCalls.map((call) => redactCall(call, text)),
    conversation: thread.conversation.map((item) => redactItem(item, text)),
  };
}

function redactItem(item: ResponseItem, text: (value: string) => string): ResponseItem {
  switch (item.type) {
    case "message":
      return { ...item, content: item.content.map((part) => ({ ...part, text: text(part.text) })) };
    case "reasoning":
      return { ...item, summary: item.summary.map((part) => ({ ...part, text: text(part.text) })) };
    case "function_call":
      return { ...item, call_id: text(item.call_id), name: text(item.name), arguments: text(item.arguments) };
    case "function_call_output":
      return { ...item, call_id: text(item.call_id), output: text(item.output) };
    default:
      return item satisfies never;
  }
}

function redactCall(call: ToolCallRecord, text: (value: string) => string): ToolCallRecord {
  return {
    ...call,
    tool_call_id: text(call.tool_call_id),
    tool_name: text(call.tool_name),
    ...(call.server_name === undefined ? {} : { server_name: text(call.server_name) }),
    error_type: call.error_type === null ? null : text(call.error_type),
  };
}

export interface Observed {
  invocation_id: string;
  facts: SessionFacts;
  /** What the transcripts added. */
  native: Pick<JoinedSession, "threads" | "joinKeysKnown" | "compactionsKnown">;
  requiredTools: readonly string[];
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
  const { facts, native, verdict, end, invocation_id, outcome } = observed;
  const supplied = { joinKeys: native.joinKeysKnown, compactions: native.compactionsKnown, threads: native.threads.length > 0 };
  return {
    source: "codex",
    records: [
      invocationRecord(observed),
      ...native.threads.slice(1).map(subagentRecord),
      ...facts.toolCalls,
      ...compactionRecords(native.threads),
      sandboxRecord(observed),
    ],
    gaps: [
      ...observed.gaps,
      ...sessionGaps(facts, verdict, end, invocation_id, supplied),
      ...startupGap(observed),
      ...interruptedGap(outcome, invocation_id),
      ...lateSubmissionGap(observed),
    ],
  };
}

/** Exactly one, with the very text of the failure: environments keep the observations, not the error. */
function startupGap({ verdict, outcome, invocation_id, exit }: Observed): ObservationGap[] {
  if (verdict.kind !== "startup_failed" || outcome.status !== "failed" || !exit.started || outcome.failure === null) return [];
  if (outcome.failure.failure_kind === "shutdown") return [];
  return [{ code: "agent_startup_failed", invocation_id, detail: outcome.failure.failure_reason }];
}

/** What was handed in before a limit ended the session stays handed in; that the session did not end with it is said. */
function lateSubmissionGap({ facts, outcome, invocation_id, requiredTools }: Observed): ObservationGap[] {
  if (outcome.status !== "incomplete") return [];
  const called = facts.toolCalls.findLast(({ tool_name, status }) => status === "completed" && requiredTools.includes(tool_name));
  return called === undefined ? [] : [{ code: "submission_late", invocation_id, detail: called.tool_name }];
}

function interruptedGap(outcome: Outcome, invocation_id: string): ObservationGap[] {
  const kind = outcome.failure?.failure_kind;
  return kind === "cancelled" || kind === "shutdown" ? [{ code: "agent_activation_interrupted", invocation_id, detail: kind }] : [];
}

function compactionRecords(threads: readonly JoinedThread[]): ObservationRecord[] {
  return threads.flatMap(({ invocation_id, compactions }) =>
    compactions.map((at) => ({
      kind: "context_compaction" as const,
      invocation_id,
      at: at === null ? null : new Date(at * 1000).toISOString(),
    })),
  );
}

function subagentRecord(thread: JoinedThread): ObservationRecord {
  const { invocation_id, parent_invocation_id, spawned_by_tool_call_id, status, duration_ms, conversation } = thread;
  return {
    kind: "agent_invocation",
    invocation_id,
    ...(parent_invocation_id === null ? {} : { parent_invocation_id }),
    ...(spawned_by_tool_call_id === null ? {} : { spawned_by_tool_call_id }),
    status,
    duration_ms,
    error_type: status === "failed" ? "turn_failed" : null,
    model_calls: namedCalls(thread),
    conversation,
  };
}

function namedCalls({ modelCalls }: Pick<JoinedThread, "modelCalls">): { response_id: string }[] {
  return modelCalls.flatMap(({ response_id }) => (response_id === null ? [] : [{ response_id }]));
}

function invocationRecord(observed: Observed): ObservationRecord {
  const { invocation_id, facts, native, verdict, outcome, elapsed_ms, requiredTools } = observed;
  const hasOmitted = verdict.kind === "completed" && requiredToolsMissing(facts, requiredTools).length > 0;
  return {
    kind: "agent_invocation",
    invocation_id,
    status: verdict.kind === "completed" || verdict.kind === "incomplete" ? verdict.kind : "failed",
    duration_ms: Math.round(elapsed_ms),
    error_type: outcome.failure?.cause_code ?? (hasOmitted ? "required_tool_not_called" : null),
    model_calls: namedCalls(native.threads[0] ?? { modelCalls: [] }),
    conversation: facts.items,
  };
}

function sandboxRecord({ exit, outcome, provider, usage }: Observed): ObservationRecord {
  return {
    kind: "sandbox",
    role: "agent",
    provider,
    outcome: sandboxOutcome(exit, outcome, usage),
    exit_code: exit.started ? exit.code : null,
    signal: exit.started ? exit.signal : null,
    wall_ms: Math.round(usage.wall_ms),
    cpu_ms: usage.cpu_ms === null ? null : Math.round(usage.cpu_ms),
    peak_memory_bytes: usage.peak_memory_bytes,
  };
}

/** "oom" also where Codex went on and completed: a command of the model's was killed. */
function sandboxOutcome(
  exit: SandboxExit,
  outcome: Outcome,
  { oom_killed }: SandboxUsage,
): Extract<ObservationRecord, { kind: "sandbox" }>["outcome"] {
  if (!exit.started) return "sandbox_error";
  if (outcome.status === "cancelled") return "cancelled";
  if (outcome.incomplete_cause === "wall_clock" || outcome.incomplete_cause === "idle") return "timeout";
  if (oom_killed === true) return "oom";
  return exit.code === 0 ? "completed" : "failed";
}

/** The bundle of an attempt that ended before Codex was launched. */
export function nothingObserved(invocation_id: string, outcome: Outcome, gaps: readonly ObservationGap[]): ObservationBundle {
  const kind = outcome.failure?.failure_kind;
  // A session that a tool server kept from starting is told in one way, whether Codex found it or the worker before it.
  const startup = outcome.failure?.cause_code.startsWith("mcp_") === true ? "agent_startup_failed" : "harness_not_run";
  const code = kind === "cancelled" || kind === "shutdown" ? "agent_activation_interrupted" : startup;
  const detail = outcome.failure?.failure_reason;
  return { source: "codex", records: [], gaps: [...gaps, { code, invocation_id, ...(detail === undefined ? {} : { detail }) }] };
}
