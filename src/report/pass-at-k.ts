// SPDX-License-Identifier: Apache-2.0
import { estimateMean, type Estimate } from "./estimate.ts";

/** Of one task: how many repeats were scored, and how many of them passed. */
export interface Passes {
  scored: number;
  passed: number;
}

export interface PassAtK {
  k: number;
  /** Chance that at least one of k repeats passes; over the tasks with at least k scored repeats (n). */
  pass_at_k: Estimate;
  /** Chance that all of k repeats pass; over the same tasks. */
  pass_hat_k: Estimate;
}

/** k = 1, 2, 4, ... and the largest number of repeats. [] when nothing is scored. Pure. */
export function passAtK(tasks: readonly Passes[]): PassAtK[] {
  const most = tasks.reduce((highest, { scored }) => Math.max(highest, scored), 0);
  const ks: number[] = [];
  for (let k = 1; k < most; k *= 2) ks.push(k);
  if (most > 0) ks.push(most);
  return ks.flatMap((k) => {
    const enough = tasks.filter(({ scored }) => scored >= k);
    const any = estimateMean(enough.map(({ scored, passed }) => 1 - chanceOfAll(scored - passed, scored, k)));
    const all = estimateMean(enough.map(({ scored, passed }) => chanceOfAll(passed, scored, k)));
    return any === null || all === null ? [] : [{ k, pass_at_k: any, pass_hat_k: all }];
  });
}

/** That k drawn from n without putting back are all among `some` of them: C(some, k) / C(n, k), the unbiased estimator of both. */
function chanceOfAll(some: number, n: number, k: number): number {
  let chance = 1;
  for (let drawn = 0; drawn < k; drawn++) chance *= Math.max(0, some - drawn) / (n - drawn);
  return chance;
}
