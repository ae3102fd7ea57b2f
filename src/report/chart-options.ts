// SPDX-License-Identifier: Apache-2.0
import type { BarSeriesOption } from "echarts/charts";
import type { GridComponentOption } from "echarts/components";
import type { ComposeOption } from "echarts/core";
import { durationText, roughDurationText } from "../contract/figures.ts";
import { printable } from "../printable.ts";

/** Bars are all that the charts need. */
export type ChartOption = ComposeOption<BarSeriesOption | GridComponentOption>;

/** CSS colours, or custom properties: the page decides for light and dark. */
export interface ChartColors {
  ink: string;
  line: string;
  bar: string;
  bad: string;
}

export interface Bar {
  name: string;
  value: number;
  /** Part of the value, drawn apart; told in the number where it is not all of it. */
  bad?: number;
}

/** Part of a chart's width for the names beside its bars: on a phone more, or "limit, without finish" was cut. */
const namesPart = (width: number): number => (width < 400 ? 0.48 : 0.4);
/** What a character of a name needs at most. */
const CHARACTER = 7.4;

/** Cut by characters: how wide a text is, only a browser knows. */
function shortened(name: string, width: number): string {
  const most = Math.floor((width * namesPart(width)) / CHARACTER);
  const characters = Array.from(new Intl.Segmenter().segment(printable(name)), ({ segment }) => segment);
  return characters.length <= most ? characters.join("") : `${characters.slice(0, most - 1).join("")}…`;
}

/** Horizontal bars, the first on top, each with its number. Pure. */
export function barsOption(bars: readonly Bar[], { width, colors }: { width: number; colors: ChartColors }): ChartOption {
  const text = { color: colors.ink, fontSize: 12 };
  const shown = bars.toReversed();
  const label = { show: true, position: "right" as const, ...text };
  const base = { type: "bar" as const, stack: "all", silent: true, emphasis: { disabled: true }, barMaxWidth: 22 };
  return {
    animation: false,
    textStyle: { fontFamily: "inherit" },
    grid: { left: Math.round(width * namesPart(width)) + 12, right: 52, top: 4, bottom: 4, containLabel: false },
    xAxis: { type: "value", show: false },
    yAxis: {
      type: "category",
      data: shown.map(({ name }) => shortened(name, width)),
      axisTick: { show: false },
      axisLine: { lineStyle: { color: colors.line } },
      axisLabel: { ...text, interval: 0 },
    },
    series: [
      { ...base, data: shown.map(({ value, bad = 0 }) => value - bad), itemStyle: { color: colors.bar } },
      {
        ...base,
        data: shown.map(({ value, bad = 0 }) => ({
          value: bad,
          label: { ...label, formatter: bad > 0 && bad < value ? `${value} (${bad})` : `${value}` },
        })),
        label,
        itemStyle: { color: colors.bad },
      },
    ],
  };
}

export interface Histogram {
  /** Lower ends, with one more: the upper end of the last. */
  edges: number[];
  counts: number[];
}

const MAX_BINS = 16;

/** Equal bins of a round width, from 0 or a negative lowest value; null of nothing. Pure. */
export function histogram(values: readonly number[], widths: readonly number[]): Histogram | null {
  if (values.length === 0) return null;
  const [lowest, highest] = values.reduce(([low, high], value) => [Math.min(low, value), Math.max(high, value)], [0, 0]);
  const width = widths.find((one) => Math.floor((highest - lowest) / one) < MAX_BINS) ?? (highest - lowest) / (MAX_BINS - 1);
  const first = Math.floor(lowest / width);
  const bins = Math.floor(highest / width) - first + 1;
  const counts = Array.from({ length: bins }, () => 0);
  for (const value of values) {
    const at = Math.floor(value / width) - first;
    counts[at] = (counts[at] ?? 0) + 1;
  }
  return { edges: Array.from({ length: bins + 1 }, (_, at) => (first + at) * width), counts };
}

/** Widths of bins for times in ms: 1 s to a day. */
export const TIME_WIDTHS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1_800, 3_600, 7_200, 14_400, 86_400].map((seconds) => seconds * 1_000);
/** For whole numbers. */
export const COUNT_WIDTHS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 5_000];
/** For rewards: tenths of 0 to 1, larger ones for other scales. */
export const REWARD_WIDTHS = [0.1, 0.2, 0.5, 1, 2, 5, 10, 50, 100];

/** Upright bars for a histogram. Pure. */
export function histogramOption(
  { edges, counts }: Histogram,
  { colors, label }: { colors: ChartColors; label: (edge: number) => string },
): ChartOption {
  const text = { color: colors.ink, fontSize: 12 };
  return {
    animation: false,
    textStyle: { fontFamily: "inherit" },
    grid: { left: 44, right: 16, top: 12, bottom: 28 },
    xAxis: {
      type: "category",
      data: counts.map((_, at) => label(edges[at] ?? 0)),
      axisTick: { show: false },
      axisLine: { lineStyle: { color: colors.line } },
      axisLabel: { ...text, hideOverlap: true },
    },
    yAxis: {
      type: "value",
      minInterval: 1,
      axisLabel: text,
      splitLine: { lineStyle: { color: colors.line } },
    },
    series: [
      { type: "bar", data: counts, barCategoryGap: "8%", silent: true, emphasis: { disabled: true }, itemStyle: { color: colors.bar } },
    ],
  };
}

/** "0", "30 s", "5 min", "1 h 30 min": where a bin of times begins. */
export function timeLabel(ms: number): string {
  if (ms === 0) return "0";
  return ms < 1_000 ? durationText(ms) : roughDurationText(ms);
}
