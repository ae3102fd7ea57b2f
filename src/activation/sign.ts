// SPDX-License-Identifier: Apache-2.0
import type { Outcome } from "./classify.ts";

/** What the end of one attempt says about the machines and the model server, for the run's breaker. */
export type Sign =
  /** They did their part, whatever became of the task. */
  | { kind: "good" }
  | { kind: "bad"; cause: SignCause }
  /** Nothing: a grant's failure, a cancel, a model server that asks to wait. */
  | { kind: "none" };

/** Failures are alike when these are equal. */
export interface SignCause {
  cause_class: "infrastructure" | "model_provider";
  failure_kind: string | null;
  cause_code: string;
  /** The model had answered in this session. */
  answered: boolean;
  /** Of one of them, for people; redacted. */
  reason: string;
}

/** The model server has too many sessions, and says so: nobody's failure, the session begins again later. */
export function isBackOff({ failure }: Pick<Outcome, "failure">): boolean {
  return failure?.cause_code === "rate_limited";
}

/** Pure. `answered`: see SessionFacts.modelAnswered; null where Codex was not launched. */
export function signOf(outcome: Outcome, answered: boolean | null): Sign {
  const { status, failure, incomplete_cause, cause_class } = outcome;
  if (status === "cancelled" || status === "refused" || isBackOff(outcome)) return { kind: "none" };
  if (cause_class === "infrastructure" || cause_class === "model_provider") {
    // A completed session is of this class only where the model server answered with nothing.
    const cause_code = failure?.cause_code ?? incomplete_cause ?? "model_answer_empty";
    const reason = failure?.failure_reason ?? (status === "completed" ? "the model's answer was empty" : "the model never answered");
    return {
      kind: "bad",
      cause: { cause_class, failure_kind: failure?.failure_kind ?? null, cause_code, answered: answered === true, reason },
    };
  }
  return { kind: cause_class === "grant" ? "none" : "good" };
}
