// SPDX-License-Identifier: Apache-2.0
import type { CancelMark } from "../activation/ports.ts";
import { captureKey } from "../contract/identity.ts";
import { MAX_REASON_CHARACTERS, type CauseCode, type Failure } from "../contract/failure.ts";
import { RESULT_SCHEMA, type ActivationResult, type Artifact, type Attempt } from "../contract/result.ts";
import { usageOfAttempts } from "../contract/usage.ts";
import type { ChildEnd, FinalJobData } from "./jobs.ts";

/** How the activation's job was left, as its parent sees it. */
export interface ChildTrace {
  /** What it returned. */
  value: ChildEnd | null;
  /** Why BullMQ failed it; it never threw on purpose. */
  failedReason: string | null;
  mark: CancelMark | null;
  /** Why a sentinel took its job out of the queue. */
  givenUp: Failure | null;
}

/** How an activation ends of which no result was committed. Total: every way in which a job can be left has an answer. */
export function failureOf({ value, failedReason, mark, givenUp }: ChildTrace): Failure {
  if (value?.kind === "failed") return value.failure;
  if (value?.kind === "committed") {
    return failure("persistence_failed", "unknown", "its result was committed, but is not in this artifact store");
  }
  if (value?.kind === "cancelled" || mark !== null) return cancelled(mark);
  if (failedReason !== null) return sessionLost(`its worker was lost: ${failedReason}`);
  if (givenUp !== null) return givenUp;
  return cancelled({ by: "unknown", at: "", reason: "its job was removed from the queue" });
}

/** The result of an activation that ended outside a run, with what its last attempt left, if there was one. Pure. */
export function resultWithoutRun(
  data: FinalJobData,
  { attempts, artifacts }: { attempts: readonly Attempt[]; artifacts: readonly Artifact[] },
  end: Failure,
  now: Date,
): ActivationResult {
  const last = attempts.at(-1);
  const episode = { ...data.episode_id, attempt: last?.attempt ?? data.episode_id.attempt };
  const isCancelled = end.failure_kind === "cancelled";
  return {
    schema: RESULT_SCHEMA,
    activation_id: data.activation_id,
    run_id: data.run_id,
    generation: data.generation,
    agent_session_id: data.agent_session_id,
    episode_id: episode,
    capture_key: captureKey(episode),
    task_id: data.task_id,
    status: isCancelled ? "cancelled" : "failed",
    response: null,
    failure: end,
    incomplete_cause: null,
    cause_class: isCancelled ? "cancelled" : "infrastructure",
    evidence: last?.evidence ?? null,
    observations: last?.observations ?? { source: "codex", records: [], gaps: [{ code: "harness_not_run" }] },
    attempts: [...attempts],
    artifacts: [...artifacts],
    usage: usageOfAttempts(attempts),
    timing: null,
    worker: last?.worker ?? null,
    ended_at: now.toISOString(),
    metadata: data.metadata,
  };
}

export function sessionLost(reason: string): Failure {
  return failure("session_lost", "session_lost", reason);
}

export function attemptsLost(charged: number): Failure {
  return sessionLost(`its worker was lost; attempts charged: ${charged}`);
}

/** An end that this activation would come to again. `reason` must be free of secrets. */
export function failure(kind: Failure["failure_kind"], cause: CauseCode, reason: string): Failure {
  const status_code = kind === "cancelled" ? 409 : 502;
  const failure_reason = reason.slice(0, MAX_REASON_CHARACTERS);
  return { failure_kind: kind, cause_code: cause, server_names: [], stage: "agent", failure_reason, terminal: true, status_code };
}

function cancelled(mark: CancelMark | null): Failure {
  const reason = mark === null ? "cancelled" : `cancelled by ${mark.by}${mark.reason === "" ? "" : `: ${mark.reason}`}`;
  return failure("cancelled", "cancelled", reason);
}
