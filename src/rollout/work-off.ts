// SPDX-License-Identifier: Apache-2.0
import type { BudgetLimit } from "../queue/budget.ts";
import type { Enqueuer } from "./enqueuer.ts";
import type { Fleet } from "./fleet.ts";
import { probe } from "./probe.ts";
import type { Reporter } from "./progress.ts";
import type { ResultsFiles } from "./results-files.ts";
import type { Tally } from "./tally.ts";
import { aborted } from "./waiting.ts";

/** How a start of a batch left its work. */
export interface WorkEnd {
  /** It was stopped with tasks left. */
  interrupted: boolean;
  /** What kept it from starting those that are left. */
  budgetSpent: BudgetLimit | null;
}

const DONE: WorkEnd = { interrupted: false, budgetSpent: null };

interface Work {
  fleet: Fleet;
  tally: Tally;
  enqueuer: Enqueuer;
  files: ResultsFiles;
  reporter: Reporter;
  /** Aborted once by a first signal (stop in order), `now` by a second one. */
  stop: { signal: AbortSignal; now: AbortSignal };
}

/**
 * Queues `planned` tasks, the first `probes` of them ahead, and waits until all have ended, the run holds itself back for good, or it is
 * told to stop. Throws what broke it; no worker of this process takes anything more then.
 */
export async function workOff(work: Work, { planned, probes }: { planned: number; probes: number }): Promise<WorkEnd> {
  const { fleet, tally, stop, reporter } = work;
  const working = queueAll(work, { planned, probes }).then(() => tally.allTaken);
  try {
    const held = tally.held.then((why) => ({ why }));
    const how = await Promise.race([working, tally.broken, aborted(stop.signal), held]);
    if (how !== undefined) {
      await fleet.stopWorkers({ now: false });
      await tally.sweep();
      if (tally.left() === 0) return DONE;
      return how.why === "breaker" ? { ...DONE, interrupted: true } : { ...DONE, budgetSpent: how.why };
    }
  } catch (error) {
    await fleet.stopWorkers({ now: false });
    await tally.sweep().catch(() => undefined); // what broke may be the store
    throw error;
  } finally {
    working.catch(() => undefined); // reported by the race, or overtaken by the stop
  }
  if (!stop.signal.aborted) return DONE;
  reporter.say("stopping: nothing new is taken, what runs is handed back; once more stops at once");
  await Promise.race([fleet.stopWorkers({ now: false }), aborted(stop.now).then(() => fleet.stopWorkers({ now: true }))]);
  await tally.sweep();
  return { ...DONE, interrupted: tally.left() > 0 };
}

async function queueAll(
  { fleet, tally, enqueuer, files, stop }: Work,
  { planned, probes }: { planned: number; probes: number },
): Promise<void> {
  const { signal } = stop;
  const probing = probes > 0 && planned > probes;
  const probeIds = probing ? await enqueuer.next(probes, signal) : [];
  if (!probing) await enqueuer.next(Number.POSITIVE_INFINITY, signal);
  if (planned > 0 && !signal.aborted) await fleet.startWorkers();
  if (!probing) return;
  await probe({ fleet, tally, files, enqueuer, ids: probeIds, signal });
  await enqueuer.next(Number.POSITIVE_INFINITY, signal);
}
