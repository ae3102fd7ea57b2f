// SPDX-License-Identifier: Apache-2.0
import type { RunEnd, StopReason } from "../activation/ports.ts";
import type { SessionActivation } from "../contract/activation.ts";
import { RollcallError } from "../errors.ts";
import { countFault } from "./attempts.ts";
import type { ClaimDecision } from "./claim.ts";
import { failure, sessionLost } from "./end-without-run.ts";
import type { ChildEnd } from "./jobs.ts";
import type { ClaimLedger } from "./ledger.ts";
import type { Queues } from "./queues.ts";
import type { QueueSettings } from "./settings.ts";
import { noCapableWorker } from "./needs.ts";

/** What is done to a claimed job when its worker is through with it. */
export type Disposal =
  /** It is over; the parent gets this. */
  | { kind: "finish"; end: ChildEnd }
  /** Back to the front of those that wait. */
  | { kind: "hand_back" }
  | { kind: "delay"; ms: number; why: "parked" | "unable" | "retry" | "fault" | "running_here" }
  /** Somebody else has it, or will find it. */
  | { kind: "leave" };

type NotStarted = Exclude<ClaimDecision, { kind: "start" }>;

/** For a claim that led to no run. */
export async function afterClaim(queues: Queues, jobId: string, decision: NotStarted): Promise<Disposal> {
  const { settings } = queues;
  if (decision.kind === "ended") return finish({ kind: "committed", status: decision.status });
  if (decision.kind === "cancelled") return finish({ kind: "cancelled" });
  if (decision.kind === "parked") return { kind: "delay", ms: settings.parked_recheck_ms, why: "parked" };
  if (decision.kind === "exhausted") {
    const reason = `its worker was lost; attempts charged: ${decision.charged}`;
    return finish({ kind: "failed", failure: sessionLost(reason) });
  }
  const given = await noCapableWorker(queues, jobId, decision.lacks);
  if (given !== null) return finish({ kind: "failed", failure: given });
  return { kind: "delay", ms: settings.unable_recheck_ms, why: "unable" };
}

/** For a run that came to an end of its own; notes the attempt in the ledger. */
export async function afterRun(
  settings: QueueSettings,
  activation: SessionActivation,
  end: RunEnd,
  ledger: ClaimLedger,
): Promise<Disposal> {
  if (end.kind === "retry") {
    const charged = await ledger.close({ charge: end.attempt.charged });
    if (charged < activation.max_attempts) return { kind: "delay", ms: backoffMs(settings, charged), why: "retry" };
    return finish({ kind: "failed", failure: end.attempt.failure ?? sessionLost(`attempts charged: ${charged}`) });
  }
  await ledger.close({ charge: false });
  return end.kind === "ended" ? finish({ kind: "committed", status: end.result.status }) : stopped(end.reason);
}

/**
 * For whatever was thrown on the way: nothing is lost and nothing goes on for ever. Not charged: it says nothing about
 * the activation. Never throws.
 */
export async function afterFault(
  queues: Queues,
  activationId: string,
  thrown: unknown,
  ledger: ClaimLedger | null,
  stop: StopReason | null,
): Promise<Disposal> {
  try {
    await ledger?.close({ charge: false });
    if (stop !== null) return stopped(stop.kind);
    const faults = await countFault(queues.redis, activationId);
    if (faults < queues.settings.max_faults) return { kind: "delay", ms: backoffMs(queues.settings, faults), why: "fault" };
    // Foreign messages may hold anything, so only ours are shown.
    const what = thrown instanceof RollcallError ? thrown.message : "see the log of its worker";
    return finish({ kind: "failed", failure: failure("agent_run_error", "unknown", `an internal fault, ${faults} times: ${what}`) });
  } catch {
    return { kind: "leave" }; // Redis is away
  }
}

/** Between half and all of base * 2^(n-1), so that what failed together does not come back together. */
function backoffMs(settings: QueueSettings, n: number): number {
  const full = Math.min(settings.retry_max_ms, settings.retry_base_ms * 2 ** Math.max(0, n - 1));
  return Math.round(full * (0.5 + Math.random() / 2));
}

function stopped(reason: StopReason["kind"]): Disposal {
  if (reason === "shutdown") return { kind: "hand_back" };
  return reason === "lock_lost" ? { kind: "leave" } : finish({ kind: "cancelled" });
}

function finish(end: ChildEnd): Disposal {
  return { kind: "finish", end };
}
