// SPDX-License-Identifier: Apache-2.0
import { useMemo } from "preact/hooks";
import { useLocation } from "wouter-preact";
import { segment } from "../ask.ts";
import { lanesOf, type Span, type WorkerLanes } from "../charts/lanes.ts";
import { MARKS, type Palette } from "../charts/palette.ts";
import { timelineHeight, timelineOption } from "../charts/timeline-option.ts";
import { durationText } from "../../../src/contract/figures.ts";
import { wholeText } from "../charts/words.ts";
import { Chart } from "../chart.tsx";
import { Moment, Name, State } from "../parts.tsx";
import type { TableRow } from "./table-rows.ts";

const MOST_WORKERS = 60;

/** When each worker had which activation. Of each the last attempt is shown. */
export function Timeline({ rows, palette, narrow }: { rows: readonly TableRow[]; palette: Palette; narrow: boolean }) {
  const [, navigate] = useLocation();
  const workers = useMemo(() => lanesOf(spansOf(rows, Date.now())), [rows]);
  const shown = useMemo(() => workers.slice(0, MOST_WORKERS), [workers]);
  const option = useMemo(() => timelineOption(shown, palette, { narrow }), [shown, palette, narrow]);
  if (workers.length === 0) return null;
  const marks = MARKS.filter((mark) => shown.some(({ spans }) => spans.some((span) => span.mark === mark)));
  return (
    <figure class="card">
      <figcaption>
        <h2>Who worked when</h2>
        <span class="marks">
          {marks.map((mark) => (
            <State key={mark} mark={mark}>
              {mark}
            </State>
          ))}
        </span>
      </figcaption>
      <Chart
        option={option}
        height={timelineHeight(shown)}
        label={`Timeline of ${wholeText(rows.length)} activations on ${wholeText(workers.length)} workers; the table below has it in figures`}
        onClick={({ seriesIndex, dataIndex }) => {
          const span = shown.flatMap(({ spans }) => spans.filter(({ mark }) => mark === MARKS[seriesIndex]))[dataIndex];
          if (span !== undefined) navigate(`/activations/${segment(span.id)}`);
        }}
      />
      {workers.length > shown.length && <p class="dim">The first {shown.length} workers; the table has all.</p>}
      <details>
        <summary>As a table</summary>
        <WorkerTable workers={workers} />
      </details>
    </figure>
  );
}

function WorkerTable({ workers }: { workers: readonly WorkerLanes[] }) {
  return (
    <table class="rows stack">
      <thead>
        <tr>
          <th scope="col">Worker</th>
          <th scope="col" class="number">
            Activations
          </th>
          <th scope="col" class="number">
            Not completed
          </th>
          <th scope="col" class="number">
            At once
          </th>
          <th scope="col" class="number">
            Busy
          </th>
          <th scope="col">From</th>
          <th scope="col">To</th>
        </tr>
      </thead>
      <tbody>
        {workers.map(({ worker, spans, lanes }) => (
          <tr key={worker}>
            <th scope="row" data-name="Worker">
              <Name>{worker}</Name>
            </th>
            <td data-name="Activations" class="number">
              {wholeText(spans.length)}
            </td>
            <td data-name="Not completed" class="number">
              {wholeText(spans.filter(({ mark }) => mark !== "completed" && mark !== "running").length)}
            </td>
            <td data-name="At once" class="number">
              {lanes}
            </td>
            <td data-name="Busy" class="number">
              {durationText(spans.reduce((sum, { from, to }) => sum + to - from, 0))}
            </td>
            <td data-name="From">
              <Moment at={spans.reduce((first, { from }) => Math.min(first, from), Number.MAX_SAFE_INTEGER)} />
            </td>
            <td data-name="To">
              <Moment at={spans.reduce((last, { to }) => Math.max(last, to), 0)} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function spansOf(rows: readonly TableRow[], now: number): Span[] {
  return rows.flatMap(({ id, worker, started, ended, mark }): Span[] => {
    if (worker === null || started === null) return [];
    const to = ended ?? now;
    return to < started ? [] : [{ id, worker, from: started, to, mark }];
  });
}
