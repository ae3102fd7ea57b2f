// SPDX-License-Identifier: Apache-2.0
import { BarChart, CustomChart } from "echarts/charts";
import { DataZoomComponent, GridComponent, TooltipComponent } from "echarts/components";
import { init, use, type ECharts } from "echarts/core";
import { CanvasRenderer } from "echarts/renderers";

// What the charts need of echarts, in a file of its own: pages are there before it has come.
use([BarChart, CustomChart, GridComponent, TooltipComponent, DataZoomComponent, CanvasRenderer]);

export type { ECharts };

/** A chart in an element. The caller disposes it. */
export function newChart(element: HTMLElement): ECharts {
  return init(element, null, { renderer: "canvas" });
}
