// SPDX-License-Identifier: Apache-2.0
import type { CauseCode, FailureKind } from "../contract/failure.ts";
import type { IncompleteCause } from "../contract/result.ts";
import type { CodexProfile } from "./profile.ts";
import type { SessionFacts } from "./session.ts";
import { meaningOf } from "./turn-failure.ts";

/** How a session ended, by contract. `error` is Codex's own text: redact it before it is shown. */
export type Verdict =
  | { kind: "completed" }
  /** Gradable. */
  | { kind: "incomplete"; cause: IncompleteCause }
  /** `terminal`: the cause is one that another attempt would meet as well. */
  | { kind: "failed"; error: string; cause: CauseCode; failureKind: FailureKind; terminal?: true }
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

/** Decides; pure. Does not wait for turn.failed: a startup failure has none. */
export function verdictOf(facts: SessionFacts, end: SessionEnd, profile: CodexProfile): Verdict {
  const cleanupError = end.cleanupError ?? null;
  if (!facts.turnStarted) return { kind: "startup_failed", error: cleanupError ?? `${exitText(end)} before a turn started` };

  const limit = cleanupError === null ? modelLimit(facts, profile) : null;
  if (limit !== null) return { kind: "incomplete", cause: limit };

  const error = cleanupError ?? firstError(facts, end) ?? lostModel(facts, end, profile);
  if (error !== null) {
    // What a good end would have excused is said after all.
    const advisories = facts.advisories.map(({ text }) => text);
    return { kind: "failed", error: [...advisories, error].join("\n"), ...causeOf(facts, end, profile) };
  }
  return end.timedOut ? { kind: "incomplete", cause: end.idle === true ? "idle" : "wall_clock" } : { kind: "completed" };
}

/** The model's own limit that ended the turn, when nothing else was wrong. */
function modelLimit({ errors }: SessionFacts, profile: CodexProfile): IncompleteCause | null {
  const limits = errors.map((error) => {
    const means = meaningOf(error, profile);
    return means !== null && "incomplete" in means ? means.incomplete : null;
  });
  return limits.includes(null) ? null : (limits.at(-1) ?? null);
}

/**
 * A limit of ours struck while Codex waited for a model server that could not be reached: not the session was slow. Only the last
 * that was heard counts; an item after it came from the model.
 */
function lostModel({ streamTrouble }: SessionFacts, end: SessionEnd, { unreachableModel }: CodexProfile): string | null {
  if (!end.timedOut || streamTrouble === null || !unreachableModel.test(streamTrouble)) return null;
  const limit = end.idle === true ? "the idle limit" : "the wall clock";
  return `${streamTrouble}\nCodex was stopped by ${limit} while it waited for the model server`;
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

function causeOf(
  facts: SessionFacts,
  end: SessionEnd,
  profile: CodexProfile,
): Omit<Extract<Verdict, { kind: "failed" }>, "kind" | "error"> {
  const made = (cause: CauseCode, failureKind: FailureKind = "agent_run_error"): ReturnType<typeof causeOf> => ({ cause, failureKind });
  const text = facts.turnFailures.at(-1);
  const means = text === undefined ? null : meaningOf(text, profile);
  if (means !== null && "cause" in means) {
    const known = made(means.cause, means.kind);
    return means.terminal === true ? { ...known, terminal: true } : known;
  }
  if (text !== undefined) return made("turn_failed");
  if (lostModel(facts, end, profile) !== null) return made("stream_lost", "provider_unavailable");
  if (end.signal !== null && !end.timedOut) return made("killed_by_signal", "kill_shaped");
  if (facts.errors.length > 0) return made("turn_failed");
  return made(end.code === null || (end.code === 0 && facts.turnCompleted) ? "unknown" : "exit_code");
}
