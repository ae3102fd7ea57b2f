// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import type { BreakerOpening, BreakerState } from "../../src/queue/breaker.ts";
import { breakerChanges, breakerProgress, breakerSentence } from "../../src/rollout/breaker.ts";
import { humanReporter, jsonReporter, progressLine } from "../../src/rollout/progress.ts";

const CLOSED: BreakerState = { openings: [], open: null };
const OPENING: BreakerOpening = {
  cause_class: "infrastructure",
  failure_kind: "transport_local_resource",
  cause_code: "sandbox_failed",
  answered: false,
  reason: "bwrap: setting up uid map\nbwrap: \u001b[31mPermission denied\n",
  opened_at: "2026-11-29T01:00:00.000Z",
  closed_at: null,
  activations: ["a", "b", "c", "d", "e"],
  untouched: 211,
  trials: 0,
};
const OPEN: BreakerState = { openings: [OPENING], open: { retry_in_ms: 60_000 } };
const OVER: BreakerState = { openings: [{ ...OPENING, closed_at: "2026-11-29T01:03:00.000Z", trials: 2 }], open: null };

describe("what a run says of its breaker", () => {
  it("is each opening and each closing once, with the cause and what is untouched [E7]", () => {
    const changes = breakerChanges(CLOSED);
    const told = [CLOSED, OPEN, OPEN, OVER, OVER].flatMap((state) => changes(state)).map(breakerSentence);
    expect(told).toEqual([
      "the run pauses itself: 5 different tasks in a row failed alike (sandbox_failed, infrastructure: bwrap: \\u001b[31mPermission denied); " +
        "211 tasks are untouched, one is tried in 1 min 00 s",
      "the run goes on: a task got past sandbox_failed after 2 failed tries",
    ]);
  });

  it("is nothing of an earlier start, and both when an opening was over before it was seen", () => {
    expect(breakerChanges(OVER)(OVER)).toEqual([]);
    expect(breakerChanges(CLOSED)(OVER).map(({ change }) => change)).toEqual(["opened", "closed"]);
  });

  it("stands in the progress while it lasts", () => {
    const state = {
      total: 220,
      ended: 3,
      failed: 0,
      refused: 0,
      cancelled: 0,
      running: 0,
      endedHere: 3,
      startedAt: 0,
      pause: null,
      refusing: null,
      budget: null,
    };
    const line = (breaker: BreakerState): string => progressLine({ ...state, breaker: breakerProgress(breaker) }, 60_000);
    expect(line(OPEN)).toBe("3/220 done, 0 failed, 0 running, paused by sandbox_failed, next try in 1 min 00 s");
    expect(line({ ...OPEN, open: { retry_in_ms: 0 } })).toBe("3/220 done, 0 failed, 0 running, paused by sandbox_failed, one is tried");
    expect(line({ ...OPEN, open: { retry_in_ms: null } })).toBe("3/220 done, 0 failed, 0 running, paused by sandbox_failed");
    expect(line(OVER)).toContain("3.0/min");
  });

  it("is a line for people, and an object for programs", () => {
    const lines: string[] = [];
    const data: unknown[] = [];
    const sink = { live: false, line: (text: string) => void lines.push(text), redraw: () => undefined };
    const [change] = breakerChanges(CLOSED)(OPEN);
    humanReporter(sink).breaker(change!);
    jsonReporter((value) => data.push(value), sink).breaker(change!);
    expect(lines).toEqual([breakerSentence(change!), breakerSentence(change!)]);
    expect(data).toEqual([{ event: "breaker_opened", ...OPENING, retry_in_ms: 60_000 }]);
  });
});
