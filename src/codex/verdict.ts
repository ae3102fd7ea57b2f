// SPDX-License-Identifier: Apache-2.0
import type { CauseCode, FailureKind } from "../contract/failure.ts";
import type { CodexProfile } from "./profile.ts";
import type { SessionFacts } from "./session.ts";

/** How a session ended, by contract. `error` is Codex's own text: redact it before it is shown. */
export type Verdict =
  | { kind: "completed" }
  /** Gradable. */
  | { kind: "incomplete"; cause: "wall_clock" | "idle" | "max_output_tokens" }
  | { kind: "failed"; error: string; cause: CauseCode; failureKind: FailureKind }
  /** Ended before any turn: no model was called. Why, stderr says: see startupCause. */
  | { kind: "startup_failed"; error: string };

export interface SessionEnd {
  /** Both null: nobody knows. */
  code: number | null;
  signal: string | null;
  /** A limit of ours ended it: the wall clock, or `idle`. */
  timedOut: boolean;
  /** It was our limit on a silent turn. */
  idle?: boolean;
  /** The sandbox could not be ended cleanly; fails the session. */
  cleanupError?: string | null;
}

/** The output limit's text in 0.144.4, and in 0.171.0, which does not retry it. */
const OUTPUT_LIMIT = /^(stream disconnected before completion: )?Incomplete response returned, reason: max_output_tokens$/;

/** Decides; pure. Does not wait for turn.failed: a startup failure has none. */
export function verdictOf(facts: SessionFacts, end: SessionEnd, _profile: CodexProfile): Verdict {
  const cleanupError = end.cleanupError ?? null;
  if (!facts.turnStarted) return { kind: "startup_failed", error: cleanupError ?? `${exitText(end)} before a turn started` };

  const outputLimited = facts.errors.length > 0 && facts.errors.every((error) => OUTPUT_LIMIT.test(error));
  if (outputLimited && cleanupError === null) return { kind: "incomplete", cause: "max_output_tokens" };

  const error = cleanupError ?? firstError(facts, end);
  if (error !== null) {
    // What a good end would have excused is said after all.
    const advisories = facts.advisories.map(({ text }) => text);
    return { kind: "failed", error: [...advisories, error].join("\n"), ...causeOf(facts, end) };
  }
  return end.timedOut ? { kind: "incomplete", cause: end.idle === true ? "idle" : "wall_clock" } : { kind: "completed" };
}

function firstError(facts: SessionFacts, end: SessionEnd): string | null {
  if (facts.errors.length > 0) return facts.errors.join("\n");
  if (end.timedOut) return null;
  if (end.code !== 0) return exitText(end);
  return facts.turnCompleted ? null : "Codex ended without turn.completed";
}

function exitText({ code, signal, timedOut }: SessionEnd): string {
  if (timedOut) return "Codex was stopped by the wall clock";
  if (signal !== null) return `Codex was killed by ${signal}`;
  return code === null ? "Codex's exit status is unknown" : `Codex exited with code ${code}`;
}

function causeOf(facts: SessionFacts, end: SessionEnd): { cause: CauseCode; failureKind: FailureKind } {
  const text = facts.turnFailures.at(-1);
  if (text !== undefined) return turnFailureCause(text);
  if (end.signal !== null && !end.timedOut) return { cause: "killed_by_signal", failureKind: "kill_shaped" };
  if (facts.errors.length > 0) return { cause: "turn_failed", failureKind: "agent_run_error" };
  if (end.code === null) return { cause: "unknown", failureKind: "agent_run_error" };
  if (end.code !== 0) return { cause: "exit_code", failureKind: "agent_run_error" };
  return { cause: facts.turnCompleted ? "unknown" : "stream_lost", failureKind: "agent_run_error" };
}

/** How Codex says that the model server has too many requests; a 503 counts when it asks to come again (0.144.4 and 0.171.0). */
const TOO_MANY =
  /last status: 429\b|^Selected model is at capacity\b|^(stream disconnected before completion: )?rate limit (reached|exceeded)\b|^unexpected status (429|503)\b.*\btry again in\b/is;

/** Reads Codex's text of a failed turn (0.144.4 and 0.171.0); the model server's own status is often lost in it. */
function turnFailureCause(text: string): { cause: CauseCode; failureKind: FailureKind } {
  if (TOO_MANY.test(text)) return { cause: "rate_limited", failureKind: "provider_unavailable" };
  if (text.startsWith("Missing environment variable: ")) return { cause: "model_key_missing", failureKind: "agent_request_failed" };
  if (/^Quota exceeded\b/.test(text)) return { cause: "turn_failed", failureKind: "provider_quota_exhausted" };
  if (text.startsWith("stream disconnected before completion: ")) return { cause: "stream_lost", failureKind: "provider_unavailable" };
  const fromProvider = /^We.re currently experiencing high demand|^unexpected status \d{3} |^exceeded retry limit/.test(text);
  return { cause: "turn_failed", failureKind: fromProvider ? "provider_unavailable" : "agent_run_error" };
}
