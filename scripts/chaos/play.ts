// SPDX-License-Identifier: Apache-2.0
import { setTimeout as delay } from "node:timers/promises";
import type { InjectedFault } from "./facts.ts";
import { inject, TARGETS, type Rig } from "./faults.ts";
import type { Injection } from "./schedule.ts";

/** Nothing ended for so long: the run is given up. */
const STUCK_MS = 240_000;
const LOOK_MS = 100;

/**
 * Injects each fault when so many activations have ended; resolves when the producer is done and all faults are over, or
 * when nothing moves any more.
 */
export async function play(
  rig: Rig,
  { schedule, tasks, say }: { schedule: readonly Injection[]; tasks: number; say: (line: string) => void },
): Promise<{ faults: InjectedFault[]; stuck: string | null }> {
  const faults: InjectedFault[] = [];
  const lanes = new Map<string, Promise<void>>();
  const waiting = [...schedule];

  async function act(next: Injection): Promise<void> {
    const fault = await inject(rig, next);
    faults.push(fault);
    say(`${rig.watch.ends.size}/${tasks} ended; ${fault.injected ? "" : "NOT INJECTED: "}${fault.fault}: ${fault.detail}`);
  }
  const done = rig.fleet.done.then(() => true);
  let [ended, since, over, stuck] = [-1, Date.now(), false, null as string | null];
  while (!over && stuck === null) {
    if (rig.watch.ends.size !== ended) [ended, since] = [rig.watch.ends.size, Date.now()];
    while (waiting[0] !== undefined && ended >= waiting[0].after_results) {
      const injection = waiting.shift()!;
      const lane = TARGETS[injection.fault];
      lanes.set(
        lane,
        (lanes.get(lane) ?? Promise.resolve()).then(() => act(injection)),
      );
    }
    if (Date.now() - since > STUCK_MS) stuck = `nothing ended for ${STUCK_MS / 1_000} s: ${ended} of ${tasks} had`;
    over = await Promise.race([done, delay(LOOK_MS, false)]);
  }
  await Promise.all(lanes.values());
  const late = waiting.map((each) => ({
    ...each,
    from: 0,
    to: 0,
    pids: [],
    activations: [],
    injected: false,
    detail: "the run had ended",
  }));
  return { faults: [...faults, ...late], stuck };
}
