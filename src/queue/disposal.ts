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
import { noCapableWorker } from "./unable.ts";

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
  switch (decision.kind) {
    case "ended":
      return finish({ kind: "committed", status: decision.status });
    case "cancelled":
      return finish({ kind: "cancelled" });
    case "exhausted":
      return finish({ kind: "failed", failure: sessionLost(`its worker was lost; ${decision.charged} attempts were charged`) });
    case "parked":
      return { kind: "delay", ms: settings.parked_recheck_ms, why: "parked" };
    case "unable": {
      const given = await noCapableWorker(queues, jobId, decision.lacks);
      return given === null ? { kind: "delay", ms: settings.unable_recheck_ms, why: "unable" } : finish({ kind: "failed", failure: given });
    }
  }
}

/** For a run that came to an end of its own; notes the attempt in the ledger. */
export async function afterRun(
  settings: QueueSettings,
  activation: SessionActivation,
  end: RunEnd,
  ledger: ClaimLedger,
): Promise<Disposal> {
  switch (end.kind) {
    case "ended":
      await ledger.close({ charge: false });
      return finish({ kind: "committed", status: end.result.status });
    case "retry": {
      const charged = await ledger.close({ charge: end.attempt.charged });
      if (charged < activation.max_attempts) return { kind: "delay", ms: backoffMs(settings, charged), why: "retry" };
      return finish({ kind: "failed", failure: end.attempt.failure ?? sessionLost(`${charged} attempts were charged`) });
    }
    case "handed_back":
      await ledger.close({ charge: false });
      return stopped(end.reason);
  }
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
export function backoffMs(settings: QueueSettings, n: number): number {
  const full = Math.min(settings.retry_max_ms, settings.retry_base_ms * 2 ** Math.max(0, n - 1));
  return Math.round(full * (0.5 + Math.random() / 2));
}

function stopped(reason: StopReason["kind"]): Disposal {
  switch (reason) {
    case "shutdown":
      return { kind: "hand_back" };
    case "lock_lost":
      return { kind: "leave" };
    case "cancelled":
      return finish({ kind: "cancelled" });
  }
}

function finish(end: ChildEnd): Disposal {
  return { kind: "finish", end };
}
