// SPDX-License-Identifier: Apache-2.0
import type { EChartsCoreOption } from "echarts/core";
import type { WorkerLanes } from "./lanes.ts";
import { MARK_NAMES, MARKS, type Palette } from "./palette.ts";
import { durationText } from "../../../src/contract/figures.ts";
import { visible } from "./words.ts";

const AXES = 58;
/** px between two workers. */
const GAP = 8;
/** px of a lane: as high as there is room for in `ROOM` px of all. */
const LANE = { least: 3, most: 12 };
const ROOM = 340;

function laneHeight(workers: readonly WorkerLanes[]): number {
  const lanes = workers.reduce((sum, worker) => sum + worker.lanes, 0);
  return Math.max(LANE.least, Math.min(LANE.most, ROOM / Math.max(1, lanes)));
}

/** How high the timeline wants to be, in px. Pure. */
export function timelineHeight(workers: readonly WorkerLanes[]): number {
  const lanes = workers.reduce((sum, worker) => sum + worker.lanes, 0);
  return Math.round(AXES + Math.max(2, lanes) * laneHeight(workers) + Math.max(1, workers.length) * GAP);
}

interface Api {
  value(dimension: number): number;
  coord(point: [number, number]): [number, number];
}
interface Area {
  coordSys: { x: number; width: number; y: number; height: number };
}

/**
 * A bar for the time that each activation was with its worker, one row for each worker; needs echarts' custom series, grid, tooltip and
 * dataZoom. `dataIndex` of an event of series s counts the spans whose mark is MARKS[s], in the order of `workers`. Pure.
 */
export function timelineOption(workers: readonly WorkerLanes[], palette: Palette, { narrow }: { narrow: boolean }): EChartsCoreOption {
  const text = { color: palette.dim, fontSize: 11, fontFamily: "system-ui, sans-serif" };
  // Rows as high as they have lanes: y counts lanes, and a gap after each worker.
  const gap = GAP / laneHeight(workers);
  const starts: number[] = [];
  let rows = 0;
  for (const { lanes } of workers) {
    starts.push(rows);
    rows += lanes + gap;
  }
  const placed = workers.flatMap(({ spans }, index) => spans.map((span) => ({ ...span, y: starts[index]! + span.lane })));
  const spansOf = MARKS.map((mark) => placed.filter((span) => span.mark === mark));
  const middle = new Map(workers.map(({ worker, lanes }, index) => [starts[index]! + lanes / 2, worker]));
  return {
    animation: false,
    grid: { left: 8, right: 14, top: 6, bottom: 34, outerBoundsMode: "same", outerBoundsContain: "axisLabel" },
    tooltip: {
      renderMode: "richText", // no HTML is made of what others named
      confine: true,
      backgroundColor: palette.paper,
      borderColor: palette.line,
      textStyle: { ...text, color: palette.ink },
      formatter({ seriesIndex, dataIndex }: { seriesIndex: number; dataIndex: number }) {
        const span = spansOf[seriesIndex]?.[dataIndex];
        if (span === undefined) return "";
        return `${plain(span.id)}\n${MARK_NAMES[span.mark]}, ${durationText(span.to - span.from)}\n${plain(span.worker)}`;
      },
    },
    dataZoom: [
      { type: "inside", filterMode: "weakFilter", zoomOnMouseWheel: "ctrl", moveOnMouseWheel: false },
      {
        type: "slider",
        filterMode: "weakFilter",
        height: 16,
        bottom: 4,
        brushSelect: false,
        showDetail: false,
        borderColor: palette.line,
        backgroundColor: palette.raised,
        fillerColor: `${palette.accent}2e`,
        handleStyle: { color: palette.paper, borderColor: palette.dim },
        dataBackground: { lineStyle: { opacity: 0 }, areaStyle: { opacity: 0 } },
        selectedDataBackground: { lineStyle: { opacity: 0 }, areaStyle: { opacity: 0 } },
      },
    ],
    xAxis: {
      type: "time",
      min: "dataMin",
      max: "dataMax",
      axisLabel: { ...text, hideOverlap: true },
      axisLine: { lineStyle: { color: palette.line } },
      splitLine: { show: true, lineStyle: { color: palette.line, type: "dotted" } },
    },
    yAxis: {
      type: "value",
      inverse: true,
      min: -gap / 2,
      max: Math.max(1, rows - gap / 2),
      axisTick: { show: false },
      axisLine: { show: false },
      splitLine: { show: false },
      axisLabel: {
        ...text,
        customValues: [...middle.keys()],
        width: narrow ? 64 : 150,
        overflow: "truncate",
        formatter: (value: number) => plain(nearest(middle, value)),
      },
    },
    series: spansOf.map((spans, index) => ({
      type: "custom",
      progressive: 0, // all of it at once
      name: MARK_NAMES[MARKS[index]!],
      // Failures above the others: of thousands, these must not vanish.
      z: MARKS[index] === "completed" ? 2 : 3,
      encode: { x: [0, 1], y: 2 },
      dimensions: ["from", "to", "y"],
      data: spans.map(({ from, to, y }) => [from, to, y]),
      renderItem: ({ coordSys }: Area, api: Api) => {
        const [left, top] = api.coord([api.value(0), api.value(2)]);
        const [right, bottom] = api.coord([api.value(1), api.value(2) + 1]);
        const x = Math.max(left, coordSys.x);
        const width = Math.min(Math.max(right, left + 2), coordSys.x + coordSys.width) - x;
        if (width <= 0) return undefined;
        return {
          type: "rect",
          shape: { x, y: top + 0.5, width, height: Math.max(2, bottom - top - 1), r: width > 6 ? 2 : 0 },
          style: { fill: palette.marks[MARKS[index]!] },
        };
      },
    })),
  };
}

/** Without what echarts reads as a style in rich text. */
function plain(text: string): string {
  return visible(text).replace(/[{}|\n]/g, " ");
}

function nearest(names: ReadonlyMap<number, string>, value: number): string {
  for (const [at, name] of names) if (Math.abs(at - value) < 1e-6) return name;
  return "";
}
