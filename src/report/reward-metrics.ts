// SPDX-License-Identifier: Apache-2.0
import { mean } from "simple-statistics";
import { byTask } from "./by-task.ts";
import { estimateMean, estimateMedian, type Estimate } from "./estimate.ts";
import { passAtK, type PassAtK } from "./pass-at-k.ts";
import type { RolloutRow } from "./rollout-row.ts";

export interface RewardMetrics {
  /** Rollouts with a reward. */
  scored: number;
  /** Completed or incomplete, and without a reward. */
  unscored_gradable: number;
  /** Of those, where verifying was tried and failed. */
  verification_failed: number;
  tasks: number;
  /** Over tasks; a task counts with the mean of its scored repeats, for repeats of one task are not independent. */
  mean_of_scored: Estimate | null;
  median_of_scored: Estimate | null;
  /** Sum of the rewards over ALL expected rollouts: whatever has none counts as 0. */
  mean_of_expected: number | null;
  /** A repeat passes with at least this reward. */
  pass_threshold: number;
  pass: PassAtK[];
}

/** null when no rollout has a reward. Pure. */
export function measureRewards(
  rows: readonly RolloutRow[],
  { expected, threshold }: { expected: number; threshold: number },
): RewardMetrics | null {
  const scored = rows.filter(({ reward }) => reward !== null);
  const unscored = rows.filter(({ reward, status }) => reward === null && (status === "completed" || status === "incomplete"));
  const failed = unscored.filter(({ verification_failed }) => verification_failed).length;
  if (scored.length === 0 && failed === 0) return null;
  const tasks = [...byTask(scored).values()].map((repeats) => repeats.map(({ reward }) => reward ?? 0));
  const means = tasks.map((rewards) => mean(rewards));
  return {
    scored: scored.length,
    unscored_gradable: unscored.length,
    verification_failed: failed,
    tasks: tasks.length,
    mean_of_scored: estimateMean(means),
    median_of_scored: estimateMedian(means),
    mean_of_expected: expected === 0 ? null : scored.reduce((total, { reward }) => total + (reward ?? 0), 0) / expected,
    pass_threshold: threshold,
    pass: passAtK(tasks.map((rewards) => ({ scored: rewards.length, passed: rewards.filter((reward) => reward >= threshold).length }))),
  };
}
