// SPDX-License-Identifier: Apache-2.0
import type { ECharts, EChartsCoreOption } from "echarts/core";
import { useEffect, useRef } from "preact/hooks";

interface Props {
  option: EChartsCoreOption;
  /** px */
  height: number;
  /** What it shows, for those who do not see it; a table beside it has the figures. */
  label: string;
  onClick?: (place: { seriesIndex: number; dataIndex: number }) => void;
}

/** A chart, as wide as there is room. */
export function Chart({ option, height, label, onClick }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const chart = useRef<ECharts | null>(null);
  const latest = useRef({ option, onClick });
  latest.current = { option, onClick };
  useEffect(() => {
    let over = false;
    let size: ResizeObserver | null = null;
    void import("./echarts.ts").then(({ newChart }) => {
      const element = place.current;
      if (over || element === null) return;
      const made = newChart(element);
      chart.current = made;
      made.on("click", ({ seriesIndex, dataIndex }) => {
        if (seriesIndex !== undefined) latest.current.onClick?.({ seriesIndex, dataIndex });
      });
      made.setOption(latest.current.option);
      size = new ResizeObserver(() => made.resize());
      size.observe(element);
    });
    return () => {
      over = true;
      size?.disconnect();
      chart.current?.dispose();
      chart.current = null;
    };
  }, []);
  useEffect(() => show(chart.current, option), [option]);
  return <div class="chart" ref={place} role="img" aria-label={label} style={{ height: `${height}px` }} />;
}

/** What somebody zoomed to stays. */
function show(chart: ECharts | null, option: EChartsCoreOption): void {
  if (chart === null) return;
  const { dataZoom = [] } = chart.getOption() as { dataZoom?: { start: number; end: number }[] };
  chart.setOption(option, { notMerge: true });
  for (const [dataZoomIndex, { start, end }] of dataZoom.entries())
    if (start > 0 || end < 100) chart.dispatchAction({ type: "dataZoom", dataZoomIndex, start, end });
}
