// SPDX-License-Identifier: Apache-2.0
import type { ActivationResult } from "../contract/result.ts";
import { RollcallError } from "../errors.ts";
import type { BreakerState } from "../queue/breaker.ts";
import type { BudgetLimit } from "../queue/budget.ts";
import type { BudgetWatch } from "./budget.ts";
import { breakerChanges, breakerProgress } from "./breaker.ts";
import { pausedBy } from "./paused.ts";
import type { Fleet } from "./fleet.ts";
import type { ProgressState, Reporter } from "./progress.ts";
import type { ResultsFiles } from "./results-files.ts";
import { durationText } from "../contract/figures.ts";
import { deferred } from "./waiting.ts";

/** Takes results in as activations end, and tells how far the batch is. */
export interface Tally {
  /** Resolves when every pending activation has its result in results.jsonl. */
  readonly allTaken: Promise<void>;
  /** Rejects when following the run, or writing a result, fails for good. */
  readonly broken: Promise<never>;
  /** Resolves with the reason when nothing more is started, and what was on its way has ended: the run's breaker is open for good, or its budget spent. */
  readonly held: Promise<"breaker" | BudgetLimit>;
  left(): number;
  isPending(activationId: string): boolean;
  /** Aborted as soon as the activation's result of this start is taken. */
  taken(activationId: string): AbortSignal;
  /** Takes in one activation's result if it has ended; false when the store has none for it. */
  takeFromStore(activationId: string): Promise<boolean>;
  /** A result that was made here. */
  record(result: ActivationResult): Promise<void>;
  /** Takes in whatever ended and was not told of yet. */
  sweep(): Promise<void>;
  close(): Promise<void>;
}

const TICK_MS = 1_000;

/** Workers that are restarted are away for less. */
const ABSENCE_TOLD_MS = 60_000;

export function makeTally(options: {
  fleet: Fleet;
  files: ResultsFiles;
  runId: string;
  pending: Set<string>;
  reporter: Reporter;
  total: number;
  startedAt: number;
  /** The run's breaker when this start began. */
  breaker: BreakerState;
  budget: BudgetWatch;
  /** The queue has lost the run: called until it does not throw an error of Redis. */
  onForgotten: () => Promise<void>;
}): Tally {
  const { fleet, files, runId, pending, reporter } = options;
  const following = new AbortController();
  const watched = new Map<string, AbortController>();
  const allTaken = deferred<void>();
  const broken = deferred<never>();
  const held = deferred<"breaker" | BudgetLimit>();
  const changesOf = breakerChanges(options.breaker);
  const before = [...files.recorded.values()].filter(({ activation_id }) => !pending.has(activation_id));
  const state: ProgressState = {
    total: options.total,
    ended: before.length,
    failed: before.filter(({ status }) => status === "failed").length,
    refused: before.filter(({ status }) => status === "refused").length,
    cancelled: before.filter(({ status }) => status === "cancelled").length,
    running: 0,
    endedHere: 0,
    startedAt: options.startedAt,
    breaker: null,
    pause: null,
    refusing: null,
    budget: null,
  };
  let toldOfAbsence = false;
  let toldOfBudget = false;

  if (pending.size === 0) allTaken.resolve();

  async function record(result: ActivationResult): Promise<void> {
    if (!(await files.take(result))) return;
    state.ended++;
    state.endedHere++;
    const { status } = result;
    if (status === "failed" || status === "refused" || status === "cancelled") state[status]++;
    reporter.ended(files.recorded.get(result.activation_id)!, state);
    pending.delete(result.activation_id);
    watched.get(result.activation_id)?.abort();
    if (pending.size === 0) allTaken.resolve();
  }

  async function take(activationId: string): Promise<boolean> {
    const result = pending.has(activationId) ? await fleet.readResult(activationId) : null;
    if (result === null) return !pending.has(activationId);
    await record(result);
    return !pending.has(activationId);
  }

  // Whoever asks while it is being taken waits for that: half taken in, it would look like one without a result.
  const taking = new Map<string, Promise<boolean>>();
  function takeFromStore(activationId: string): Promise<boolean> {
    const one = taking.get(activationId) ?? take(activationId).finally(() => taking.delete(activationId));
    taking.set(activationId, one);
    return one;
  }

  const follow = (async () => {
    for await (const { activation_id } of fleet.follow(runId, { signal: following.signal })) await takeFromStore(activation_id);
  })().catch((error: unknown) => broken.reject(error));

  let restoring = false;
  async function restore(): Promise<void> {
    if (restoring || fleet.forgotten === undefined || !(await fleet.forgotten(runId)) || restoring) return;
    restoring = true;
    try {
      await options.onForgotten();
    } catch (error) {
      if (error instanceof RollcallError) broken.reject(error);
      throw error;
    } finally {
      restoring = false;
    }
  }

  async function look(): Promise<void> {
    await restore();
    // First: once it is open, or spent, nothing more begins.
    const breaker = await fleet.breaker(runId);
    const budget = await options.budget.look(fleet);
    state.running = await fleet.running(runId);
    if (fleet.phases !== undefined) state.phases = await fleet.phases(runId);
    state.breaker = breakerProgress(breaker);
    state.budget = budget;
    if (budget.spent !== null && !toldOfBudget) reporter.say(spentSentence(budget.spent, state.running));
    toldOfBudget = budget.spent !== null;
    const pause = await fleet.pause(runId);
    if (pause !== null && state.pause === null) reporter.say(`the run is paused${pausedBy(pause)}; \`rollcall resume\` lets it go on`);
    if (pause === null && state.pause !== null) reporter.say("the run goes on: it was resumed");
    state.pause = pause;
    state.refusing = (await fleet.refusingModels())[0] ?? null;
    const absentMs = await fleet.workersAbsentMs();
    if (absentMs !== null && absentMs >= ABSENCE_TOLD_MS && !toldOfAbsence)
      reporter.say(`no worker has lived for ${durationText(absentMs)}: ${pending.size} tasks wait; start one with \`rollcall worker\``);
    toldOfAbsence = absentMs !== null && absentMs >= ABSENCE_TOLD_MS;
    for (const change of changesOf(breaker)) reporter.breaker(change);
    reporter.progress(state);
    const why = budget.spent ?? (breaker.open?.retry_in_ms === null ? "breaker" : null);
    if (why !== null && (await fleet.ending(runId)) === 0) held.resolve(why);
  }
  const ticker = setInterval(() => {
    look().catch(() => undefined); // Redis is away for the moment; the next tick asks again
  }, TICK_MS);

  return {
    allTaken: allTaken.promise,
    broken: broken.promise,
    held: held.promise,
    left: () => pending.size,
    isPending: (activationId) => pending.has(activationId),
    taken(activationId) {
      const watch = watched.get(activationId) ?? new AbortController();
      watched.set(activationId, watch);
      if (!pending.has(activationId)) watch.abort();
      return watch.signal;
    },
    takeFromStore,
    record,
    async sweep() {
      for await (const id of fleet.listEnded()) await takeFromStore(id);
    },
    async close() {
      clearInterval(ticker);
      following.abort();
      await follow;
    },
  };
}

function spentSentence(spent: BudgetLimit, running: number): string {
  const flag = spent === "not_after" ? "max-hours" : spent.replaceAll("_", "-");
  return `the budget is spent (--${flag}): nothing more is started, ${running} still run to their end`;
}
