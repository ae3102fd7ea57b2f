// SPDX-License-Identifier: Apache-2.0
import { BarChart } from "echarts/charts";
import { GridComponent } from "echarts/components";
import { init, use } from "echarts/core";
import { SVGRenderer } from "echarts/renderers";
import type { ChartOption } from "./chart-options.ts";

/** A chart as the text of an SVG element, drawn here: whoever shows it needs no script. Every text in it is escaped. */
export function drawChart(option: ChartOption, size: { width: number; height: number }): string {
  use([BarChart, GridComponent, SVGRenderer]);
  const chart = init(null, null, { renderer: "svg", ssr: true, ...size });
  try {
    chart.setOption(option);
    return chart.renderToSVGString({ useViewBox: true });
  } finally {
    chart.dispose();
  }
}
