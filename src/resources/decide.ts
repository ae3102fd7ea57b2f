// SPDX-License-Identifier: Apache-2.0
import { MAX_REASON_CHARACTERS, type Failure } from "../contract/failure.ts";
import type { ActivationResult } from "../contract/result.ts";
import { RollcallError } from "../errors.ts";
import { describeFault, faultKind, isRetryable, type CallFault } from "./call-failure.ts";
import type { RolloutRecord } from "./record.ts";
import type { ResourcesLimits } from "./server.ts";

// What a rollout does after something failed. All pure.

/** Why one attempt of a rollout failed. */
export interface AttemptFailure {
  failure: Failure;
  /** False: nobody's fault that another attempt would meet again, e.g. a worker that was stopped. */
  counted: boolean;
  /** As the other side asked. */
  waitMs: number | null;
}

/** Attempts that do not count; more than this many are a fault that nobody has seen yet. */
const MAX_UNCOUNTED = 100;

/** The session of this attempt is closed next; then another attempt follows, or the end. `pauseMs`: at least, before another. */
export function afterFailure(
  record: RolloutRecord,
  failed: AttemptFailure,
  limits: ResourcesLimits,
  pauseMs: number,
  now: number,
): RolloutRecord {
  const counted = record.counted + (failed.counted ? 1 : 0);
  const uncounted = record.uncounted + (failed.counted ? 0 : 1);
  const over = failed.failure.terminal || counted >= limits.max_failures || uncounted > MAX_UNCOUNTED;
  return {
    ...record,
    state: "close",
    counted,
    uncounted,
    tries: 0,
    not_before: over ? 0 : now + Math.max(failed.waitMs ?? 0, pauseMs),
    unreachable_since: null,
    next: over ? "end" : "again",
    failure: failed.failure,
  };
}

/** The next attempt, once the session of the last one is closed. */
export function nextAttempt(record: RolloutRecord): RolloutRecord {
  return {
    ...record,
    state: "seed",
    attempt: record.attempt + 1,
    generation: record.generation + (record.queued ? 1 : 0),
    session_open: false,
    session: null,
    queued: false,
    tries: 0,
    next: null,
    failure: null,
  };
}

/** verify: it is to be scored. end: so it stays. failed: another attempt may do better. */
export type AfterActivation = { kind: "verify" } | { kind: "end"; failure: Failure | null } | ({ kind: "failed" } & AttemptFailure);

/**
 * A lost session is another worker's luck, also where its own end was called final. One that was handed back, or that found its
 * model server busy, is not counted.
 */
export function afterActivation({ status, failure, attempts }: ActivationResult, attempt: number): AfterActivation {
  if (status === "completed" || status === "incomplete") return { kind: "verify" };
  if (status !== "failed" || failure === null) return { kind: "end", failure };
  const own = attempts.find((one) => one.attempt === attempt);
  if (own?.charged === false) return { kind: "failed", failure: { ...failure, terminal: false }, counted: false, waitMs: null };
  const lost = failure.failure_kind === "session_lost" || failure.failure_kind === "shutdown";
  if (failure.terminal && !lost) return { kind: "end", failure };
  return { kind: "failed", failure: { ...failure, terminal: false }, counted: true, waitMs: null };
}

/** The failure that a call to the resources server was. */
export function callFailed(fault: CallFault, stage: "seed" | "verification"): Failure {
  return resourcesFailure({
    kind: faultKind(fault, stage === "seed" ? "environment_server_failed" : "verifier_error"),
    cause: stage === "seed" ? "resources_seed_failed" : "verification_failed",
    stage,
    reason: `the resources server's ${stage === "seed" ? "/seed_session" : "/verify"}: ${describeFault(fault)}`,
    terminal: !isRetryable(fault),
    statusCode: fault.kind === "status" && fault.status >= 400 ? fault.status : fault.kind === "timeout" ? 504 : 502,
  });
}

/** What the store had of the rollout was removed; null: `thrown` says something else. Nothing brings it back. */
export function removedFromStore(thrown: unknown, stage: "seed" | "verification"): Failure | null {
  if (!(thrown instanceof RollcallError) || !["row_missing", "result_missing"].includes(thrown.code)) return null;
  return resourcesFailure({ kind: "persistence_failed", cause: "unknown", stage, reason: thrown.message, terminal: true, statusCode: 502 });
}

export function waitOf(fault: CallFault): number | null {
  return fault.kind === "status" ? fault.retryAfterMs : null;
}

/** `reason` must be free of secrets. */
export function resourcesFailure(of: {
  kind: Failure["failure_kind"];
  cause: Failure["cause_code"];
  stage: Failure["stage"];
  reason: string;
  terminal: boolean;
  statusCode: number;
}): Failure {
  return {
    failure_kind: of.kind,
    cause_code: of.cause,
    server_names: [],
    stage: of.stage,
    failure_reason: of.reason.slice(0, MAX_REASON_CHARACTERS),
    terminal: of.terminal,
    status_code: of.statusCode,
  };
}

/** Whether a server that is out of reach is waited for without counting: nothing was sent. Null: it has been too long. */
export function whileUnreachable(
  record: RolloutRecord,
  fault: CallFault,
  limits: ResourcesLimits,
  now: number,
): { record: RolloutRecord; ms: number } | null {
  if (fault.kind !== "unreachable") return null;
  const since = record.unreachable_since ?? now;
  if (now - since >= limits.unreachable_ms) return null;
  const ms = Math.min(30_000, Math.max(1_000, now - since), Math.max(1, limits.unreachable_ms - (now - since)));
  return { ms, record: { ...record, unreachable_since: since } };
}
