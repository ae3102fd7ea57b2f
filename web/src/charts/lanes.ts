// SPDX-License-Identifier: Apache-2.0
import type { Mark } from "./palette.ts";

/** The time that a worker had an activation; ms since 1970. */
export interface Span {
  id: string;
  worker: string;
  from: number;
  to: number;
  mark: Mark;
}

export interface WorkerLanes {
  worker: string;
  /** Each with its lane, from 0; spans of one lane do not overlap. */
  spans: (Span & { lane: number })[];
  lanes: number;
}

/** Spans by worker, those beside each other in lanes of their own, as few as will do. Pure. */
export function lanesOf(spans: readonly Span[]): WorkerLanes[] {
  const workers = new Map<string, Span[]>();
  for (const span of spans) {
    const some = workers.get(span.worker);
    if (some === undefined) workers.set(span.worker, [span]);
    else some.push(span);
  }
  return [...workers]
    .toSorted(([one], [other]) => one.localeCompare(other))
    .map(([worker, some]) => {
      const ends: number[] = []; // of each lane, so far
      const placed = some
        .toSorted((one, other) => one.from - other.from)
        .map((span) => {
          const free = ends.findIndex((end) => end <= span.from);
          const lane = free === -1 ? ends.length : free;
          ends[lane] = span.to;
          return { ...span, lane };
        });
      return { worker, spans: placed, lanes: Math.max(1, ends.length) };
    });
}
