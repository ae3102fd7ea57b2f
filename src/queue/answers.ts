// SPDX-License-Identifier: Apache-2.0
import type { ActivationState } from "./find-activation.ts";

export type ControlAction = "cancel" | "retry" | "pause" | "resume" | "status";

/** done: it has been done. asked: whoever has the activation was told. nothing: there was nothing to do. impossible: it cannot be done. */
export type Outcome = "done" | "asked" | "nothing" | "impossible";

export interface Answer {
  outcome: Outcome;
  /** For people, in the past tense: what happened to an activation that was found in this state. */
  text: string;
}

const UNKNOWN: Answer = { outcome: "impossible", text: "not known: never queued here, or removed since" };
const NOT_ENDED: Answer = { outcome: "impossible", text: "not retried: it has not ended" };

const GOES_ON: Answer = { outcome: "nothing", text: "goes on to its end" };

/** What each request does to an activation, by the state in which it is found. The one place; docs/operations.md shows it. */
const ANSWERS: Record<ControlAction, Record<ActivationState, Answer>> = {
  cancel: {
    waiting: { outcome: "done", text: "cancelled before it began" },
    parked: { outcome: "done", text: "cancelled before it began" },
    delayed: { outcome: "done", text: "cancelled before its next attempt; earlier ones are kept" },
    starting: { outcome: "asked", text: "told to stop before Codex begins" },
    running: { outcome: "asked", text: "told to stop: Codex gets SIGTERM, and SIGKILL 5 s later; what was seen is kept" },
    committing: { outcome: "asked", text: "told to stop while its end was being committed: what came first stands" },
    ended: { outcome: "nothing", text: "had ended; its result stands" },
    unknown: UNKNOWN,
  },
  retry: {
    waiting: NOT_ENDED,
    parked: NOT_ENDED,
    delayed: { outcome: "impossible", text: "not retried: its next attempt comes by itself" },
    starting: NOT_ENDED,
    running: NOT_ENDED,
    committing: NOT_ENDED,
    ended: { outcome: "done", text: "queued again as a new generation; the earlier result is kept" },
    unknown: UNKNOWN,
  },
  // Of a run; what they mean to each of its activations.
  pause: {
    waiting: { outcome: "done", text: "parked when a worker takes it" },
    parked: { outcome: "done", text: "stays parked" },
    delayed: { outcome: "done", text: "parked when its next attempt is due" },
    starting: GOES_ON,
    running: GOES_ON,
    committing: GOES_ON,
    ended: { outcome: "nothing", text: "had ended" },
    unknown: UNKNOWN,
  },
  resume: {
    waiting: { outcome: "nothing", text: "starts when a worker is free" },
    parked: { outcome: "done", text: "woken, as many as the run's limit lets" },
    delayed: { outcome: "nothing", text: "its next attempt comes by itself" },
    starting: GOES_ON,
    running: GOES_ON,
    committing: GOES_ON,
    ended: { outcome: "nothing", text: "had ended" },
    unknown: UNKNOWN,
  },
  status: {
    waiting: { outcome: "done", text: "waits for a worker" },
    parked: { outcome: "done", text: "held back by its run: paused, or as many run as may" },
    delayed: { outcome: "done", text: "waits for its next attempt, or for a worker that can run it" },
    starting: { outcome: "done", text: "a worker prepares it; Codex has not begun" },
    running: { outcome: "done", text: "Codex runs" },
    committing: { outcome: "done", text: "Codex is gone; its end is being collected and recorded" },
    ended: { outcome: "done", text: "has ended" },
    unknown: UNKNOWN,
  },
};

/** Pure, and total: each request has an answer for each state. */
export function answerTo(action: ControlAction, state: ActivationState): Answer {
  return ANSWERS[action][state];
}
