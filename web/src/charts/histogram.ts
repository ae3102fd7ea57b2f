// SPDX-License-Identifier: Apache-2.0

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

/** How values are spread, for a chart and in figures; null of none. Pure. */
export function distributionOf(values: readonly number[]): Distribution | null {
  if (values.length === 0) return null;
  const sorted = Float64Array.from(values).sort();
  const at = (share: number): number => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]!;
  const most = sorted.at(-1)!;
  const [p50, p90, p99] = [at(0.5), at(0.9), at(0.99)];
  const step = niceStep(Math.max(p99, p50 * 2) / MOST_BINS, values.every(Number.isInteger));
  const last = Math.min(MOST_BINS - 1, Math.floor(most / step));
  const bins = Array.from({ length: last + 1 }, (_, index): Bin => ({ from: index * step, to: (index + 1) * step, count: 0 }));
  for (const value of sorted) bins[Math.min(last, Math.floor(value / step))]!.count += 1;
  bins[last]!.to = Math.max(bins[last]!.to, most);
  return { bins, count: sorted.length, p50, p90, p99, most, sum: sorted.reduce((sum, each) => sum + each, 0) };
}

/** 1, 2 or 5 times a power of ten, at least `least`; a whole number where the values are. */
function niceStep(least: number, whole: boolean): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, Number.MIN_VALUE)));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((each) => each >= least) ?? power;
  return whole ? Math.max(1, step) : step > 0 && Number.isFinite(step) ? step : 1;
}
