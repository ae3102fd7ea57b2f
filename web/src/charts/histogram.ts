// SPDX-License-Identifier: Apache-2.0
import { quantile } from "../../../src/contract/figures.ts";

interface Bin {
  from: number;
  /** Not included, but in the last one. */
  to: number;
  count: number;
}

export interface Distribution {
  /** Of the same width; what is far beyond the others is in the last one, whose `to` then is the greatest value. */
  bins: Bin[];
  count: number;
  p50: number;
  p90: number;
  p99: number;
  most: number;
  sum: number;
}

const MOST_BINS = 24;
/** 0.3 / 0.1 is a little less than 3. */
const ROUNDING = 1e-9;

/** How values are spread, for a chart and in figures; null of none. Pure. */
export function distributionOf(values: readonly number[]): Distribution | null {
  if (values.length === 0) return null;
  const sorted = [...Float64Array.from(values).sort()];
  const at = (share: number): number => quantile(sorted, share)!;
  const [least, most] = [sorted[0]!, sorted.at(-1)!];
  const [p50, p90, p99] = [at(0.5), at(0.9), at(0.99)];
  const below = Math.min(0, least); // rewards may be negative
  const widest = Math.max(p99, p50 * 2) - below;
  const step = niceStep(widest / (below < 0 ? MOST_BINS - 2 : MOST_BINS), values.every(Number.isInteger));
  const placeOf = (value: number): number => Math.floor(value / step + ROUNDING);
  const first = placeOf(below);
  const last = Math.min(MOST_BINS - 1, Math.max(0, placeOf(most)) - first);
  const bins = Array.from({ length: last + 1 }, (_, index): Bin => {
    const at = first + index;
    return { from: at * step, to: (at + 1) * step, count: 0 };
  });
  for (const value of sorted) bins[Math.max(0, Math.min(last, placeOf(value) - first))]!.count += 1;
  bins[last]!.to = Math.max(bins[last]!.to, most);
  return { bins, count: sorted.length, p50, p90, p99, most, sum: sorted.reduce((sum, each) => sum + each, 0) };
}

/** 1, 2 or 5 times a power of ten, at least `least`; a whole number where the values are. */
function niceStep(least: number, whole: boolean): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, Number.MIN_VALUE)));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((each) => each >= least) ?? power;
  const usable = step > 0 && Number.isFinite(step) ? step : 1;
  return whole ? Math.max(1, usable) : usable;
}
