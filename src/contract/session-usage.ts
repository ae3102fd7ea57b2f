// SPDX-License-Identifier: Apache-2.0
import type { WrittenUsage } from "./usage.ts";

/** What is looked at of an attempt; earlier records lack some of it. */
export interface CountedAttempt {
  usage?: WrittenUsage | null | undefined;
  evidence?: { turn_started: boolean; threads?: readonly { open_model_calls: number }[] | undefined } | null | undefined;
  failure?: { failure_kind: string } | null | undefined;
  observations: { gaps: readonly { code: string }[] };
}

/** How much of what the sessions of some attempts took is told. */
export interface SessionCounts {
  /** Sessions whose usage is known. */
  known: number;
  /** Sessions that may have called the model and of which nothing is known: they were lost with their worker, handed back, or left no record. */
  unknown: number;
  /** Model calls that may have been answered and billed, and of which no record tells. */
  open_model_calls: number;
}

/** `usage`: of the result that these attempts belong to; records that do not say it by attempt say it there, of the last session. Pure. */
export function countSessions(attempts: readonly CountedAttempt[], usage: WrittenUsage | null): SessionCounts {
  const told = attempts.filter((attempt) => attempt.usage != null).length;
  const known = told === 0 && usage !== null ? 1 : told;
  return {
    known,
    unknown: Math.max(0, attempts.filter(isUsageUnknown).length - (known - told)),
    open_model_calls: attempts
      .flatMap(({ evidence }) => evidence?.threads ?? [])
      .reduce((sum, { open_model_calls }) => sum + open_model_calls, 0),
  };
}

/** Whether its session may have called the model, and nothing is known of what it took. Pure. */
export function isUsageUnknown({ usage, evidence, failure, observations }: CountedAttempt): boolean {
  if (usage != null) return false;
  if (evidence != null) return evidence.turn_started && (evidence.threads ?? []).length === 0;
  // Without evidence Codex was not launched, or nobody could save what it left. One that was stopped before it has the same gap.
  const stopped = failure?.failure_kind === "cancelled" || failure?.failure_kind === "shutdown";
  return !stopped && observations.gaps.some(({ code }) => code === "agent_activation_interrupted");
}

/** Answered model calls of all threads of a session; null: its record does not list threads. Pure. */
export function answeredCalls(threads: readonly { model_calls: number }[] | undefined): number | null {
  return threads === undefined || threads.length === 0 ? null : threads.reduce((sum, { model_calls }) => sum + model_calls, 0);
}
