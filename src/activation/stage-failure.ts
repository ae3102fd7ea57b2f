// SPDX-License-Identifier: Apache-2.0
import type { CauseCode, Failure, FailureKind } from "../contract/failure.ts";
import { MAX_REASON_CHARACTERS } from "../contract/failure.ts";
import type { ObservationGap } from "../contract/observation.ts";
import { messageOf, RollcallError } from "../errors.ts";
import { isDiskFull } from "../host/disk-full.ts";

export interface StageFailureDetails {
  thrown?: unknown;
  server_names?: string[];
  gaps?: readonly ObservationGap[];
}

/** Ends an attempt before Codex ran: a stage could not do its part. Carries the failure the result will hold. */
export class StageFailure extends Error {
  readonly failure: Failure;
  /** What the stage saw; redacted. */
  readonly gaps: readonly ObservationGap[];

  constructor(failure: Failure, { thrown, gaps = [] }: StageFailureDetails = {}) {
    super(failure.failure_reason, thrown === undefined ? undefined : { cause: thrown });
    this.name = "StageFailure";
    this.failure = failure;
    this.gaps = gaps;
  }
}

/** Whose doing the causes are, and whether the same activation would fail again. */
const BEFORE_LAUNCH: Partial<Record<CauseCode, { kind: FailureKind; stage: Failure["stage"]; terminal: boolean; status: number }>> = {
  disk_full: { kind: "transport_local_resource", stage: "agent", terminal: false, status: 503 },
  sandbox_failed: { kind: "transport_local_resource", stage: "seed", terminal: false, status: 503 },
  model_key_missing: { kind: "agent_request_failed", stage: "admission", terminal: true, status: 422 },
  key_origin_not_allowed: { kind: "agent_request_failed", stage: "admission", terminal: true, status: 422 },
  config_invalid: { kind: "agent_run_error", stage: "agent", terminal: true, status: 502 },
  mcp_server_auth: { kind: "agent_run_error", stage: "agent", terminal: true, status: 502 },
  codex_version_mismatch: { kind: "agent_run_error", stage: "agent", terminal: true, status: 502 },
};

/** A failure of a stage before Codex was launched. `reason` must be free of secrets. */
export function stageFailure(cause: CauseCode, reason: string, details: StageFailureDetails = {}): StageFailure {
  const { kind, stage, terminal, status } = BEFORE_LAUNCH[cause] ?? {
    kind: "agent_run_error",
    stage: "agent",
    terminal: false,
    status: 502,
  };
  return new StageFailure(
    {
      failure_kind: kind,
      cause_code: cause,
      server_names: details.server_names ?? [],
      stage,
      failure_reason: reason.slice(0, MAX_REASON_CHARACTERS),
      terminal,
      status_code: status,
    },
    details,
  );
}

/** Whatever a stage threw, as the failure of the attempt. Errors of ours say which cause they are by their code. */
export function asStageFailure(thrown: unknown, fallback: CauseCode): StageFailure {
  if (thrown instanceof StageFailure) return thrown;
  if (isDiskFull(thrown)) return stageFailure("disk_full", messageOf(thrown), { thrown });
  const cause = thrown instanceof RollcallError && thrown.code in BEFORE_LAUNCH ? (thrown.code as CauseCode) : fallback;
  return stageFailure(cause, messageOf(thrown), { thrown });
}
