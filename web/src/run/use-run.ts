// SPDX-License-Identifier: Apache-2.0
import { useRef, useState } from "preact/hooks";
import type { RunReply } from "../../../src/api/run-view.ts";
import { askJson, askRows, segment } from "../ask.ts";
import { useRepeated } from "../repeat.ts";
import { mergedRows, tableRow, type TableRow } from "./table-rows.ts";

const EVERY_MS = 2_500;
/** Of a run in which nothing is left to do: somebody may retry some of it. */
const ENDED_EVERY_MS = 15_000;
const MOST_ENDED = 100_000;
const MOST_OPEN = 20_000;
/** Those that wait change less, and may be many: looked at when so many looks were made, or their number changed while they are few. */
const WAITING_EVERY = 8;
const FEW = 500;

export interface RunNow {
  run: RunReply | null;
  rows: readonly TableRow[];
  /** All rows that are there have come. */
  complete: boolean;
  error: unknown;
  again: () => void;
}

interface Seen {
  cursor: string;
  ended: Map<string, TableRow>;
  waiting: TableRow[];
  waitingCount: number;
  looks: number;
}

/** A run and all its rows, kept up to date: what ended is read once, and then only what came since. */
export function useRun(runId: string): RunNow {
  const seen = useRef<Seen>({ cursor: "0-0", ended: new Map(), waiting: [], waitingCount: -1, looks: 0 });
  const [run, setRun] = useState<RunReply | null>(null);
  const [rows, setRows] = useState<readonly TableRow[]>([]);
  const [complete, setComplete] = useState(false);

  const { error, again } = useRepeated(async (signal) => {
    const known = seen.current;
    const base = `/v1/runs/${segment(runId)}`;
    const now = Date.now();
    const told = await askJson<RunReply>(base, { signal });
    setRun(told);
    const running: TableRow[] = [];
    await Promise.all([
      askRows(
        `${base}/rows?cursor=${known.cursor}&limit=${MOST_ENDED}`,
        (row) => {
          if (row.state !== "ended") return;
          known.cursor = row.cursor;
          const before = known.ended.get(row.activation_id);
          if (before === undefined || before.generation <= row.generation) known.ended.set(row.activation_id, tableRow(row, now));
        },
        signal,
      ),
      askRows(`${base}/rows?state=running&limit=${MOST_OPEN}`, (row) => running.push(tableRow(row, now)), signal),
    ]);
    const waitingCount = told.waiting + told.parked + told.delayed + (told.rollouts?.with_server ?? 0);
    const changed = waitingCount !== known.waitingCount;
    if (known.looks % WAITING_EVERY === 0 || (changed && waitingCount <= FEW)) {
      const waiting: TableRow[] = [];
      if (waitingCount > 0)
        await askRows(`${base}/rows?state=waiting&limit=${MOST_OPEN}`, (row) => waiting.push(tableRow(row, now)), signal);
      known.waiting = waiting;
      known.waitingCount = waitingCount;
    }
    known.looks += 1;
    setRows(mergedRows(known.ended, [...known.waiting, ...running]));
    setComplete(true);
    return told.running + waitingCount === 0 ? ENDED_EVERY_MS : EVERY_MS;
  }, runId);
  return { run, rows, complete, error, again };
}
