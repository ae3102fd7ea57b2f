// SPDX-License-Identifier: Apache-2.0
import type { RefusingModel } from "../queue/model-limiter.ts";
import type { BudgetState } from "../queue/budget.ts";
import type { PauseMark } from "../queue/pause.ts";
import type { Phase } from "../resources/record.ts";
import { breakerSentence, type BreakerChange } from "./breaker.ts";
import { printable } from "../printable.ts";
import type { ResultFacts } from "./facts.ts";
import { durationText } from "../contract/figures.ts";

/** How far a batch is. */
export interface ProgressState {
  total: number;
  /** With a result, from this start or an earlier one. */
  ended: number;
  /** Of those, how many ended how. */
  failed: number;
  refused: number;
  cancelled: number;
  running: number;
  /** Rollouts at a resources server; absent where the run has none. */
  phases?: Record<Phase, number>;
  /** Ended since this command started, and when that was, in ms since the epoch. */
  endedHere: number;
  startedAt: number;
  /** The run has paused itself. `retry_in_ms` null = for good. */
  breaker: { cause_code: string; retry_in_ms: number | null } | null;
  /** Somebody paused the run. */
  pause: PauseMark | null;
  /** A model server that has served nobody since it began to refuse sessions; of several the first. */
  refusing: RefusingModel | null;
  /** What it has used, and may use; null: not known yet. */
  budget: BudgetState | null;
}

/** Results a minute, and the ms until the last one; null before there is anything to judge by. Pure. */
function pace(state: ProgressState, now: number): { perMinute: number | null; etaMs: number | null } {
  const elapsed = now - state.startedAt;
  if (state.endedHere === 0 || elapsed <= 0 || state.ended >= state.total) return { perMinute: null, etaMs: null };
  const perMs = state.endedHere / elapsed;
  return { perMinute: perMs * 60_000, etaMs: Math.max(0, state.total - state.ended) / perMs };
}

/** e.g. "12/220 done, 1 failed, 4 running, 3.1/min, about 1 h 07 min left". Pure. */
export function progressLine(state: ProgressState, now: number): string {
  const { perMinute, etaMs } = pace(state, now);
  const { breaker, pause, refusing, budget } = state;
  const counts = countsOf(state);
  if (budget !== null && budget.spent !== null) return `${counts}, budget spent`;
  if (pause !== null) return `${counts}, paused by ${printable(pause.by)}`;
  if (breaker !== null) {
    const then =
      breaker.retry_in_ms === null
        ? ""
        : breaker.retry_in_ms === 0
          ? ", one is tried"
          : `, next try in ${durationText(breaker.retry_in_ms)}`;
    return `${counts}, paused by ${breaker.cause_code}${then}`;
  }
  if (refusing !== null) {
    const { server, since, waiting } = refusing;
    const told = `model server ${printable(server)} refuses since ${since.slice(11, 16)} UTC, ${waiting} sessions wait`;
    return `${counts}, ${told}`;
  }
  const rate = perMinute === null ? "" : `, ${perMinute.toFixed(1)}/min, about ${durationText(etaMs)} left`;
  const atServer = state.phases === undefined ? "" : `, ${state.phases.seeding} seeding, ${state.phases.verifying} verifying`;
  return `${counts}${atServer}${rate}`;
}

/** What is rare is told only where there is some. */
function countsOf({ ended, total, failed, refused, cancelled, running }: ProgressState): string {
  const rare = [refused === 0 ? [] : `${refused} refused`, cancelled === 0 ? [] : `${cancelled} cancelled`].flat();
  return [`${ended}/${total} done`, `${failed} failed`, ...rare, `${running} running`].join(", ");
}

/** Where a batch tells what happens. */
export interface Reporter {
  /** A sentence for people: what is being done, what was repaired. */
  say(text: string): void;
  ended(facts: ResultFacts, state: ProgressState): void;
  breaker(change: BreakerChange): void;
  progress(state: ProgressState): void;
}

/** A place for lines: stderr, or the log after the terminal is gone. */
export interface LineSink {
  /** True when a line can be drawn over. */
  readonly live: boolean;
  line(text: string): void;
  /** Draws over the last such text; only called when live. */
  redraw(text: string): void;
}

const PLAIN_EVERY_MS = 30_000;

/** For people: a line that is redrawn on a terminal, else one every 30 s and at each tenth of the way. */
export function humanReporter(sink: LineSink, now: () => number = () => performance.now()): Reporter {
  let lastAt = 0;
  let lastTenth = 0;
  return {
    say: (text) => sink.line(text),
    ended(facts, state) {
      if (facts.status !== "completed") sink.line(`${facts.task_id.task_id}: ${facts.status}${because(facts)}`);
      this.progress(state);
    },
    breaker: (change) => sink.line(breakerSentence(change)),
    progress(state) {
      if (sink.live) return sink.redraw(progressLine(state, now()));
      const tenth = state.total === 0 ? 0 : Math.floor((state.ended / state.total) * 10);
      if (tenth === lastTenth && now() - lastAt < PLAIN_EVERY_MS) return;
      lastTenth = tenth;
      lastAt = now();
      sink.line(progressLine(state, now()));
    },
  };
}

/** For programs: one JSON object a line on stdout, sentences on stderr. */
export function jsonReporter(data: (value: unknown) => void, sink: LineSink, now: () => number = () => performance.now()): Reporter {
  let lastAt = 0;
  return {
    say: (text) => sink.line(text),
    ended(facts) {
      const { activation_id, generation, task_id, status, failure } = facts;
      data({ event: "ended", activation_id, generation, task_id: task_id.task_id, status, failure });
    },
    breaker(change) {
      sink.line(breakerSentence(change));
      const { change: event, opening, retry_in_ms } = change;
      data({ event: `breaker_${event}`, ...opening, retry_in_ms });
    },
    progress(state) {
      if (now() - lastAt < 5_000) return;
      lastAt = now();
      const { perMinute, etaMs } = pace(state, now());
      const { total, ended, failed, refused, cancelled, running, phases, breaker, pause, refusing, budget } = state;
      const { seeding, verifying } = phases ?? {};
      data({
        event: "progress",
        total,
        ended,
        failed,
        refused,
        cancelled,
        running,
        seeding,
        verifying,
        per_minute: perMinute,
        eta_ms: etaMs,
        breaker,
        pause,
        refusing,
        budget,
      });
    },
  };
}

function because(facts: ResultFacts): string {
  const cause = facts.failure?.cause_code ?? facts.incomplete_cause;
  return cause === null ? "" : ` (${cause})`;
}
