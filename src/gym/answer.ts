// SPDX-License-Identifier: Apache-2.0
import { createHash } from "node:crypto";
import type { FailureKind } from "../contract/failure.ts";
import type { ActivationResult } from "../contract/result.ts";
import type { AgentServerSettings } from "./ports.ts";
import { conflict, GymProblem } from "./problem.ts";

/** A Responses API object, or one whose turn failed. */
export type ResponseObject = Record<string, unknown>;

/** However far the turn had come: the harness lost it, and the agent has no part in that. */
const HARNESS_KINDS: ReadonlySet<FailureKind> = new Set([
  "session_lost",
  "session_expired",
  "session_release_failed",
  "shutdown",
  "persistence_failed",
  "transport_local_resource",
]);

/**
 * What the waiting caller gets for the end of its session: the response of one that is gradable; of a turn that failed a response
 * that says so. Throws GymProblem: 409 for one that was closed or cancelled, 502 for one that failed before or beside a turn.
 * The same result gives the same answer. Pure.
 */
export function answerOf(
  result: ActivationResult,
  {
    metadata,
    model,
    agentOutcome,
  }: { metadata: Record<string, string>; model: string | null; agentOutcome: AgentServerSettings["agent_outcome"] },
): ResponseObject {
  const { status, response, failure } = result;
  if (status === "cancelled") throw conflict(`the agent session was ended: ${failure?.failure_reason ?? "cancelled"}`);
  if ((status === "completed" || status === "incomplete") && response !== null) {
    return { ...response, metadata: { ...metadata, ...response.metadata } };
  }
  const reason = failure?.failure_reason ?? "the result holds no response";
  const inTurn = result.evidence?.turn_started === true && failure !== null && !HARNESS_KINDS.has(failure.failure_kind);
  if (!inTurn || agentOutcome === "502") throw new GymProblem(502, `Codex execution failed: ${reason}`);
  return failedResponse(result, { reason, model, metadata: { ...metadata, ng_agent_outcome: outcomeOf(failure) } });
}

/** Metadata of a response is text, so the object is told as JSON. */
function outcomeOf({ failure_kind, status_code }: NonNullable<ActivationResult["failure"]>): string {
  return JSON.stringify({ failure_kind, status_code });
}

/** Made of what was observed: the result of a failed turn holds no response of its own. */
function failedResponse(
  { activation_id, observations, worker, ended_at, attempts }: ActivationResult,
  { reason, model, metadata }: { reason: string; model: string | null; metadata: Record<string, string> },
): ResponseObject {
  const invocation = observations.records.find((record) => record.kind === "agent_invocation");
  return {
    id: `resp_${createHash("sha256").update(activation_id).digest("hex").slice(0, 32)}`,
    object: "response",
    created_at: Math.floor(Date.parse(attempts.at(-1)?.started_at ?? ended_at) / 1_000),
    model: model ?? "codex-default",
    status: "failed",
    error: { code: "server_error", message: reason },
    incomplete_details: null,
    output: invocation?.conversation ?? [],
    // Of its last session, as in every response; the result has what all attempts took.
    usage: attempts.at(-1)?.usage ?? null,
    metadata: {
      ...metadata,
      harness_execution: "sandbox",
      ...(worker === null ? {} : { harness_hostname: worker.host }),
      ...(worker?.codex_version == null ? {} : { codex_version: worker.codex_version }),
    },
    parallel_tool_calls: true,
    tool_choice: "auto",
    tools: [],
  };
}
