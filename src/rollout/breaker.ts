// SPDX-License-Identifier: Apache-2.0
import type { BreakerOpening, BreakerState } from "../queue/breaker.ts";
import { printable } from "../printable.ts";
import { durationText } from "../contract/figures.ts";

/** Something to tell about the run's breaker. */
export interface BreakerChange {
  change: "opened" | "closed";
  opening: BreakerOpening;
  /** null when it closed, or does not try again by itself. */
  retry_in_ms: number | null;
}

/** Finds what is new in the states of a breaker, each opening and closing once. `before`: what an earlier start has told. */
export function breakerChanges(before: BreakerState): (now: BreakerState) => BreakerChange[] {
  const opened = new Set(before.openings.map(({ opened_at }) => opened_at));
  const closed = new Set(opened);
  return ({ openings, open }) => {
    const changes: BreakerChange[] = [];
    for (const opening of openings) {
      const { opened_at, closed_at } = opening;
      const told = { opening, retry_in_ms: closed_at === null ? (open?.retry_in_ms ?? null) : null };
      if (!opened.has(opened_at)) changes.push({ change: "opened", ...told });
      opened.add(opened_at);
      if (closed_at !== null && !closed.has(opened_at)) {
        changes.push({ change: "closed", ...told });
        closed.add(opened_at);
      }
    }
    return changes;
  };
}

/** For people. Pure. */
export function breakerSentence({ change, opening, retry_in_ms }: BreakerChange): string {
  const { cause_code, cause_class, activations, untouched, trials, reason } = opening;
  if (change === "closed") {
    const tries = trials === 0 ? "the first try" : `${trials} failed ${trials === 1 ? "try" : "tries"}`;
    return `the run goes on: a task got past ${cause_code} after ${tries}`;
  }
  const then = retry_in_ms === null ? "no further one is started" : `one is tried in ${durationText(retry_in_ms)}`;
  const words = printable(reason.trim().split("\n").at(-1)!.slice(0, 300));
  return (
    `the run pauses itself: ${activations.length} different tasks in a row failed alike (${cause_code}, ${cause_class}: ${words}); ` +
    `${untouched} tasks are untouched, ${then}`
  );
}

/** What the progress shows while it is open; null when it is closed. Pure. */
export function breakerProgress({ openings, open }: BreakerState): { cause_code: string; retry_in_ms: number | null } | null {
  return open === null ? null : { cause_code: openings.at(-1)?.cause_code ?? "unknown", retry_in_ms: open.retry_in_ms };
}
