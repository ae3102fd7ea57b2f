// SPDX-License-Identifier: Apache-2.0
import type { SessionActivation } from "../contract/activation.ts";
import type { ActivationResult, Attempt, WorkerInfo } from "../contract/result.ts";
import type { UnsavedAttempt } from "./lost-attempt.ts";
import type { Sign } from "./sign.ts";

/** Why a running attempt is told to stop; the reason of its AbortSignal. */
export type StopReason =
  /** Somebody asked: the activation ends as cancelled. */
  | { kind: "cancelled"; mark: CancelMark }
  /** Another worker may have it by now: stop at once, commit nothing. */
  | { kind: "lock_lost" }
  /** This worker ends: hand the activation back, uncharged. */
  | { kind: "shutdown" };

/** A request to cancel, as stored: who, when (ISO 8601), why. */
export interface CancelMark {
  by: string;
  at: string;
  reason: string;
}

/** What the queue hands to the straight line for one claimed activation. */
export interface Claim {
  activation: SessionActivation;
  generation: number;
  /** ISO 8601, when it was enqueued. */
  enqueued_at: string;
  /** Aborted with a {@link StopReason} as its reason. */
  signal: AbortSignal;
  ledger: AttemptLedger;
}

export interface AttemptLedger {
  /**
   * The next attempt number (never reused) and how many charged attempts went before. Taken at the START of a physical run.
   * `by` is for the record of this attempt, should nobody else be left to write it.
   */
  takeAttempt(by?: WorkerInfo): Promise<{ attempt: number; charged: number }>;
  /** Attempts before the taken one that may have saved no attempt.json. */
  unsavedBefore(): readonly UnsavedAttempt[];
  /** What this attempt has used, for the budget of its run; counted when the attempt leaves. */
  used(used: Used): void;
  /** The claim was lost, and another attempt has begun since. Throws when Redis is away. */
  isOvertaken(): Promise<boolean>;
  /** THE end is committed: whoever runs a later attempt stops. Never throws and never waits. */
  committed(): void;
  /** Read again right before commit. */
  cancelMark(): Promise<CancelMark | null>;
  /**
   * Tells the run's breaker how the attempt ended, before that is saved. `charged` false: the breaker was open before, so
   * that the attempt must not count.
   */
  tell(sign: Sign): Promise<{ charged: boolean }>;
  /** The model answered for the first time. Never throws and never waits. */
  answered(): void;
  /** Never throws and never waits; drops what comes faster than the stream takes. Already redacted. */
  progress(entry: ProgressEntry): void;
}

/** What attempts have used of the model. Of one that was lost with its worker, or of which Codex tells nothing, nothing is counted. */
export interface Used {
  /** Those that were answered, by Codex' transcript. */
  model_calls: number;
  /** Input and output. */
  tokens: number;
}

/** One line of live progress, at most 2 KB as JSON. */
export interface ProgressEntry {
  stage: "starting" | "running" | "collecting" | "ended";
  attempt: number;
  /** e.g. "finish (office)", "exec_command", "message". */
  note?: string;
  /** Of the attempt so far. */
  counts?: ProgressCounts;
}

interface ProgressCounts {
  turns: number;
  tool_calls: number;
  /** null: Codex tells it only when a turn is complete. */
  tokens: number | null;
}

/** How a claimed activation left the straight line. */
export type RunEnd =
  /** result.json exists: made by this run, or found. */
  | { kind: "ended"; result: ActivationResult }
  /** attempt.json is saved and says whether the attempt is charged; another may follow. */
  | { kind: "retry"; attempt: Attempt }
  /** The model server had too many sessions: attempt.json is saved, uncharged, and it begins again. `wait_ms`: as the server asked; null = it did not say. */
  | { kind: "back_off"; attempt: Attempt; wait_ms: number | null }
  /** Nothing was charged; somebody else goes on with it. */
  | { kind: "handed_back"; reason: StopReason["kind"] };
