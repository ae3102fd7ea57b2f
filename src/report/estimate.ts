// SPDX-License-Identifier: Apache-2.0
import { mean, median, quantileSorted, sampleWithReplacement } from "simple-statistics";
import { fixedRandom } from "./random.ts";

const RESAMPLES = 2_000;

/** A number from a sample, and how far another sample of that size would plausibly have put it. */
export interface Estimate {
  value: number;
  /** 95 %, percentile bootstrap, always the same for the same values; null below two values. */
  interval: [low: number, high: number] | null;
  n: number;
}

/** Mean with its interval; null of none. Values that depend on each other (repeats of one task) belong averaged first. Pure. */
export function estimateMean(values: readonly number[]): Estimate | null {
  return estimate(values, mean);
}

/** Median with its interval; null of none. Pure. */
export function estimateMedian(values: readonly number[]): Estimate | null {
  return estimate(values, median);
}

function estimate(values: readonly number[], statistic: (sample: number[]) => number): Estimate | null {
  if (values.length === 0) return null;
  const sample = [...values];
  const value = statistic(sample);
  if (sample.length < 2) return { value, interval: null, n: sample.length };
  const random = fixedRandom();
  const resampled = Array.from({ length: RESAMPLES }, () => statistic(sampleWithReplacement(sample, sample.length, random)));
  resampled.sort((a, b) => a - b);
  return { value, interval: [quantileSorted(resampled, 0.025), quantileSorted(resampled, 0.975)], n: sample.length };
}
