// SPDX-License-Identifier: Apache-2.0
import type { Logger } from "pino";
import type { RunEnd, StopReason } from "../activation/ports.ts";
import type { Sign } from "../activation/sign.ts";
import type { SessionActivation } from "../contract/activation.ts";
import type { Failure } from "../contract/failure.ts";
import { RollcallError } from "../errors.ts";
import { isDiskFull } from "../host/disk-full.ts";
import { countFault } from "./attempts.ts";
import { tellBreaker, type Teller } from "./breaker.ts";
import type { ClaimDecision } from "./claim.ts";
import { attemptsLost, failure, sessionLost } from "./end-without-run.ts";
import type { ChildEnd } from "./jobs.ts";
import type { ClaimLedger } from "./ledger.ts";
import { refusedByModel, type ModelSlot } from "./model-limiter.ts";
import type { Queues } from "./queues.ts";
import type { QueueSettings } from "./settings.ts";
import { noCapableWorker } from "./needs.ts";

/** What is done to a claimed job when its worker is through with it. */
export type Disposal =
  /** It is over; the parent gets this. */
  | { kind: "finish"; end: ChildEnd }
  /** Back to the front of those that wait. */
  | { kind: "hand_back" }
  | { kind: "delay"; ms: number; why: "unable" | "retry" | "back_off" | "fault" | "running_here" }
  /** Until something opens. `server`: the model server whose turn it awaits; null = its run's gate. */
  | { kind: "delay"; ms: number; why: "parked"; server: string | null }
  /** Somebody else has it, or will find it. */
  | { kind: "leave" };

type NotStarted = Exclude<ClaimDecision, { kind: "start" }>;

/** For a claim that led to no run. */
export async function afterClaim(queues: Queues, jobId: string, decision: NotStarted): Promise<Disposal> {
  const { settings } = queues;
  if (decision.kind === "ended") return finish({ kind: "committed", status: decision.status });
  if (decision.kind === "cancelled") return finish({ kind: "cancelled" });
  if (decision.kind === "parked") return { kind: "delay", ms: settings.parked_recheck_ms, why: "parked", server: decision.server };
  if (decision.kind === "exhausted") return finish({ kind: "failed", failure: attemptsLost(decision.charged) });
  if (decision.kind === "spent") return finish({ kind: "failed", failure: decision.failure });
  const given = await noCapableWorker(queues, jobId, decision.needs);
  if (given !== null) return finish({ kind: "failed", failure: given });
  return { kind: "delay", ms: settings.unable_recheck_ms, why: "unable" };
}

/** For a run that came to an end of its own; notes the attempt in the ledger. */
export async function afterRun(
  settings: QueueSettings,
  activation: SessionActivation,
  end: Exclude<RunEnd, { kind: "back_off" }>,
  ledger: ClaimLedger,
): Promise<Disposal> {
  if (end.kind === "retry") {
    const charged = await ledger.close({ charge: end.attempt.charged, saved: true });
    if (charged < activation.max_attempts) return { kind: "delay", ms: retryPauseMs(settings, charged, Math.random()), why: "retry" };
    return finish({ kind: "failed", failure: end.attempt.failure ?? sessionLost(`attempts charged: ${charged}`) });
  }
  const closed = ledger.close({ charge: false, saved: true });
  if (end.kind === "ended") {
    await closed.catch(() => undefined); // Redis is away: the end is committed, and BullMQ tells it as soon as it can
    return finish({ kind: "committed", status: end.result.status });
  }
  await closed;
  return stopped(end.reason);
}

/** What wakes together does not try together: up to a second, or as much again as a shorter wait. */
const SPREAD_MS = 1_000;

/** For a run that its model server had no room for: nothing is charged, and all others wait too. */
export async function afterBackOff(
  queues: Queues,
  from: { jobId: string; model: ModelSlot; end: Extract<RunEnd, { kind: "back_off" }>; ledger: ClaimLedger; log: Logger },
): Promise<Disposal> {
  const { jobId, model, end, ledger, log } = from;
  await ledger.close({ charge: false, saved: true });
  const { waitMs, limit, first } = await refusedByModel(queues, model, jobId, end.wait_ms);
  if (first)
    log.warn({ server: model.server, sessions: limit, wait_ms: waitMs }, "the model server is busy: fewer sessions at once, after a pause");
  return { kind: "delay", ms: waitMs + Math.round(Math.random() * Math.min(waitMs, SPREAD_MS)), why: "back_off" };
}

/** A fault of ours, for the breaker: what is broken here may be broken for all. */
function signOfFault({ failure_kind, cause_code, failure_reason }: Failure): Sign {
  return { kind: "bad", cause: { cause_class: "infrastructure", failure_kind, cause_code, answered: false, reason: failure_reason } };
}

/**
 * For whatever was thrown on the way: nothing is lost and nothing goes on for ever. Not charged: it says nothing about
 * the activation. Never throws.
 */
export async function afterFault(
  queues: Queues,
  names: Teller,
  thrown: unknown,
  ledger: ClaimLedger | null,
  stop: StopReason | null,
): Promise<Disposal> {
  if (thrown instanceof RollcallError && thrown.code === "claim_lost") return { kind: "leave" };
  try {
    await ledger?.close({ charge: false, saved: false });
    if (stop !== null) return stopped(stop.kind);
    const isFull = isDiskFull(thrown);
    // Foreign messages may hold anything, so only ours are shown.
    const what = thrown instanceof RollcallError ? thrown.message : isFull ? "a disk of its worker is full" : "see the log of its worker";
    const failed = (reason: string): Failure =>
      isFull ? failure("transport_local_resource", "disk_full", reason) : failure("agent_run_error", "unknown", reason);
    const { charged } = await tellBreaker(queues, names, signOfFault(failed(`an internal fault: ${what}`)));
    const faults = charged ? await countFault(queues.redis, names.activationId) : 0;
    const pause = retryPauseMs(queues.settings, faults, Math.random());
    // By then a worker has seen how little room it has, and takes nothing until there is more.
    const ms = isFull ? Math.max(pause, queues.settings.unable_recheck_ms) : pause;
    if (faults < queues.settings.max_faults) return { kind: "delay", ms, why: "fault" };
    return finish({ kind: "failed", failure: failed(`an internal fault, ${faults} times: ${what}`) });
  } catch {
    return { kind: "leave" }; // Redis is away
  }
}

/**
 * The pause before the next attempt: between half of base * 2^(charged-1) and the whole, so that what failed together does not
 * come back together, nor before the worker that let go of it is through with it. `random` in [0, 1). Pure.
 */
export function retryPauseMs(
  { retry_base_ms, retry_max_ms }: Pick<QueueSettings, "retry_base_ms" | "retry_max_ms">,
  charged: number,
  random: number,
): number {
  const most = Math.min(retry_max_ms, retry_base_ms * 2 ** Math.max(0, charged - 1));
  return Math.round(most * (0.5 + random / 2));
}

function stopped(reason: StopReason["kind"]): Disposal {
  if (reason === "shutdown") return { kind: "hand_back" };
  return reason === "lock_lost" ? { kind: "leave" } : finish({ kind: "cancelled" });
}

function finish(end: ChildEnd): Disposal {
  return { kind: "finish", end };
}
