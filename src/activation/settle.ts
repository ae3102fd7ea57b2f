// SPDX-License-Identifier: Apache-2.0
import type { ObservationBundle } from "../contract/observation.ts";
import { usageOfAttempts } from "../contract/usage.ts";
import type { Response, Usage } from "../contract/response.ts";
import {
  attemptSchema,
  RESULT_SCHEMA,
  resultSchema,
  type ActivationResult,
  type Artifact,
  type Attempt,
  type Evidence,
  type Timing,
  type WorkerInfo,
} from "../contract/result.ts";
import { redactValue } from "../redact/index.ts";
import { toldWaitMs } from "../codex/told-wait.ts";
import type { AttemptContext } from "./attempt.ts";
import { newCanary, type Canary } from "./canary.ts";
import { cancelledOutcome, handedBackOutcome, type Outcome } from "./classify.ts";
import type { CancelMark, Claim, RunEnd, StopReason, Used } from "./ports.ts";
import type { RunPorts } from "./run.ts";
import { withUnsaved } from "./lost-attempt.ts";
import { isBackOff, signOf } from "./sign.ts";
import { within } from "./within.ts";

/** It answers in milliseconds; the breaker and the cancel mark are worth a short wait, not the result. */
const REDIS_ANSWER_MS = 3_000;

/** What an attempt leaves. Everything in it is redacted. */
export interface AttemptReport {
  outcome: Outcome;
  observations: ObservationBundle;
  response: Response | null;
  evidence: Evidence | null;
  artifacts: Artifact[];
  timing: Timing;
  worker: WorkerInfo;
  /** Of all threads of the session; null = nothing is known of it. */
  usage: Usage | null;
  used: Used;
}

/**
 * Saves the attempt, then decides: handed back, another attempt, or THE end. The order matters: the attempt is on disk before
 * anything says that it ended, and the cancel mark is read right before the commit.
 */
export async function settle(claim: Claim, context: AttemptContext, left: AttemptReport, ports: RunPorts): Promise<RunEnd> {
  const { activation_id } = claim.activation;
  claim.ledger.used(left.used);
  const canary = newCanary(context, ports);
  const report = await withSearchedEvidence(await unlessOvertaken(claim, left, ports), canary);
  const handedBack = report.outcome.failure?.failure_kind === "shutdown";
  const charged = !handedBack && !isBackOff(report.outcome) && (await counts(claim, report, ports));
  const attempt = await canary.document("attempt.json", attemptSchema, attemptRecord(context, report, { charged }));
  await ports.store.putAttempt(activation_id, attempt);
  if (handedBack) {
    const standing = await ports.store.readCommit(activation_id);
    if (standing?.generation === claim.generation) return { kind: "ended", result: standing };
    return { kind: "handed_back", reason: (claim.signal.reason as StopReason | undefined)?.kind ?? "lock_lost" };
  }

  const mark = redactValue(context.secrets, await lastCancelMark(claim, ports));
  if (mark === null && isBackOff(report.outcome))
    return { kind: "back_off", attempt, wait_ms: toldWaitMs(report.outcome.failure!.failure_reason) };
  if (mark === null && mayTryAgain(report.outcome, context, { charged })) return { kind: "retry", attempt };
  const final = mark === null ? report : { ...report, outcome: cancelledOutcome(mark) };
  // Also when the claim was lost meanwhile: finished work is not thrown away, and whoever commits second reads the first's.
  const saved = await ports.store.readAttempts(activation_id);
  const attempts = withUnsaved(saved, claim.ledger.unsavedBefore(), context.episode.rollout_id, new Date());
  const ending = await canary.document("result.json", resultSchema, resultOf(claim, context, final, attempts));
  const { result } = await ports.store.commit(ending);
  claim.ledger.committed();
  return { kind: "ended", result };
}

/**
 * What did not end well is no end where another attempt has begun meanwhile: this worker stood still, and whoever has the
 * activation now ended its Codex, or a time limit struck that had only waited for the worker.
 */
async function unlessOvertaken({ ledger, activation }: Claim, report: AttemptReport, { log }: RunPorts): Promise<AttemptReport> {
  const { status, failure } = report.outcome;
  if (status === "completed" || status === "cancelled" || failure?.failure_kind === "shutdown") return report;
  const overtaken = await answerOf(ledger.isOvertaken()).catch((error: unknown) => {
    log.warn({ activation_id: activation.activation_id, err: error }, "whether another attempt has begun could not be asked");
    return false;
  });
  return overtaken ? { ...report, outcome: handedBackOutcome("lock_lost") } : report;
}

async function withSearchedEvidence(report: AttemptReport, canary: Canary): Promise<AttemptReport> {
  const { artifacts, gaps } = await canary.evidence(report.artifacts);
  const { observations } = report;
  return { ...report, artifacts, observations: { ...observations, gaps: [...observations.gaps, ...gaps] } };
}

/** Whether the attempt counts: not when it met what had opened the run's breaker before. */
async function counts({ ledger, activation }: Claim, { outcome, evidence }: AttemptReport, { log }: RunPorts): Promise<boolean> {
  try {
    return (await answerOf(ledger.tell(signOf(outcome, evidence?.model_answered ?? null)))).charged;
  } catch (error) {
    log.warn({ activation_id: activation.activation_id, err: error }, "the run's breaker could not be told of an attempt");
    return true;
  }
}

/** Redis may be away just now; finished work is committed all the same. */
async function lastCancelMark({ ledger, activation }: Claim, { log }: RunPorts): Promise<CancelMark | null> {
  try {
    return await answerOf(ledger.cancelMark());
  } catch (error) {
    log.warn({ activation_id: activation.activation_id, err: error }, "the cancel mark could not be read before the commit");
    return null;
  }
}

/** Whatever Redis is asked for before a commit. It may be away, or stand still: finished work must be saved before this worker dies too. */
async function answerOf<T>(asked: Promise<T>): Promise<T> {
  if (!(await within(REDIS_ANSWER_MS, asked))) throw new Error(`Redis did not answer within ${REDIS_ANSWER_MS / 1_000} s`);
  return asked;
}

function mayTryAgain(
  { status, failure }: Outcome,
  { charged: before, activation }: AttemptContext,
  { charged }: { charged: boolean },
): boolean {
  return status === "failed" && failure?.terminal === false && (!charged || before + 1 < activation.max_attempts);
}

function attemptRecord(context: AttemptContext, report: AttemptReport, { charged }: { charged: boolean }): Attempt {
  return {
    attempt: context.attempt,
    capture_key: context.capture_key,
    worker: report.worker,
    started_at: context.started_at.toISOString(),
    ended_at: new Date().toISOString(),
    status: report.outcome.status,
    incomplete_cause: report.outcome.incomplete_cause,
    cause_class: report.outcome.cause_class,
    charged,
    failure: report.outcome.failure,
    grants: context.activation.tool_grants.map(({ name, required }) => ({ name, required })),
    evidence: report.evidence,
    usage: report.usage,
    observations: report.observations,
  };
}

function resultOf(
  { activation, generation }: Claim,
  context: AttemptContext,
  report: AttemptReport,
  attempts: Attempt[],
): ActivationResult {
  const { outcome, response } = report;
  return {
    schema: RESULT_SCHEMA,
    activation_id: activation.activation_id,
    run_id: activation.run_id,
    generation,
    agent_session_id: activation.agent_session_id ?? null,
    episode_id: context.episode,
    capture_key: context.capture_key,
    task_id: activation.task_id,
    status: outcome.status,
    response,
    failure: outcome.failure,
    incomplete_cause: outcome.incomplete_cause,
    cause_class: outcome.cause_class,
    evidence: report.evidence,
    observations: report.observations,
    attempts,
    artifacts: report.artifacts,
    usage: usageOfAttempts(attempts),
    timing: report.timing,
    worker: report.worker,
    ended_at: new Date().toISOString(),
    metadata: activation.metadata,
  };
}
