// SPDX-License-Identifier: Apache-2.0
import type { EChartsCoreOption } from "echarts/core";
import type { Distribution } from "./histogram.ts";
import type { Palette } from "./palette.ts";

/** Bars of how often each value occurs; needs echarts' bar, grid and tooltip. `words` of a value on the axis. Pure. */
export function histogramOption({ bins }: Distribution, palette: Palette, words: (value: number) => string): EChartsCoreOption {
  const text = { color: palette.dim, fontSize: 11, fontFamily: "system-ui, sans-serif" };
  return {
    animation: false,
    grid: { left: 4, right: 8, top: 10, bottom: 2, outerBoundsMode: "same", outerBoundsContain: "axisLabel" },
    tooltip: {
      trigger: "axis",
      renderMode: "richText", // no HTML is made of anything
      confine: true,
      axisPointer: { type: "shadow", shadowStyle: { color: palette.line, opacity: 0.5 } },
      backgroundColor: palette.paper,
      borderColor: palette.line,
      textStyle: { ...text, color: palette.ink },
      formatter(parts: unknown) {
        const [part] = parts as { dataIndex: number }[];
        const bin = bins[part?.dataIndex ?? 0]!;
        return `${words(bin.from)} to ${words(bin.to)}: ${bin.count}`;
      },
    },
    xAxis: {
      type: "category",
      data: bins.map(({ from }) => words(from)),
      axisLine: { lineStyle: { color: palette.line } },
      axisTick: { show: false },
      axisLabel: { ...text, hideOverlap: true },
    },
    yAxis: {
      type: "value",
      minInterval: 1,
      splitNumber: 3,
      axisLabel: text,
      splitLine: { lineStyle: { color: palette.line } },
    },
    series: [
      {
        type: "bar",
        data: bins.map(({ count }) => (count === 0 ? null : count)),
        barCategoryGap: "12%",
        barMinHeight: 2,
        itemStyle: { color: palette.marks.completed, borderRadius: [2, 2, 0, 0] },
      },
    ],
  };
}
