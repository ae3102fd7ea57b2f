// SPDX-License-Identifier: Apache-2.0
import { captureKey } from "../contract/identity.ts";
import type { Attempt, WorkerInfo } from "../contract/result.ts";

/** An attempt that began, and whose worker may have ended before it could save a record of it. */
export interface UnsavedAttempt {
  attempt: number;
  /** null: it did not say. */
  worker: WorkerInfo | null;
  /** ISO 8601, by its worker's clock. */
  started_at: string;
  /** Its worker was lost, or has not ended yet. Else it said that nothing could be saved, and was not charged. */
  lost: boolean;
}

const UNKNOWN_WORKER: WorkerInfo = { id: "unknown", host: "unknown", version: "unknown", codex_version: null, sandbox_provider: null };

/**
 * The attempts that saved their own records, and the others as far as anybody knows of them, by number. A lost one ended at
 * an unknown time before `noticed`. Pure.
 */
export function withUnsaved(saved: readonly Attempt[], unsaved: readonly UnsavedAttempt[], rolloutId: string, noticed: Date): Attempt[] {
  const known = new Set(saved.map(({ attempt }) => attempt));
  const others = unsaved.filter(({ attempt }) => !known.has(attempt));
  return [...saved, ...others.map((one) => unsavedRecord(one, rolloutId, noticed))].sort((a, b) => a.attempt - b.attempt);
}

function unsavedRecord({ attempt, worker, started_at, lost }: UnsavedAttempt, rolloutId: string, noticed: Date): Attempt {
  const capture_key = captureKey({ rollout_id: rolloutId, attempt });
  const detail = lost ? "its worker was lost before it could save how the attempt ended" : "an internal fault: nothing could be saved";
  return {
    attempt,
    capture_key,
    worker: worker ?? UNKNOWN_WORKER,
    started_at,
    ended_at: noticed.toISOString(),
    status: "failed",
    incomplete_cause: null,
    cause_class: "infrastructure",
    charged: lost,
    failure: {
      failure_kind: lost ? "session_lost" : "agent_run_error",
      cause_code: lost ? "session_lost" : "unknown",
      server_names: [],
      stage: "agent",
      failure_reason: detail,
      terminal: false,
      status_code: 502,
    },
    grants: [],
    evidence: null,
    usage: null,
    observations: {
      source: "codex",
      records: [],
      gaps: [{ code: "agent_activation_interrupted", invocation_id: capture_key, detail: "its record was never written" }],
    },
  };
}
