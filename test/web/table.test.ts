// SPDX-License-Identifier: Apache-2.0
import * as fc from "fast-check";
import { expect, it } from "vitest";
import { filterIn, matching, searchOf, sorted, type Filter } from "../../web/src/run/filter.ts";
import { mergedRows, tableRow, type TableRow } from "../../web/src/run/table-rows.ts";

const NOW = Date.parse("2026-11-29T16:10:00.000Z");

const ended = (activation_id: string, more: Record<string, unknown> = {}): TableRow =>
  tableRow(
    {
      state: "ended",
      cursor: "1-0",
      activation_id,
      generation: 0,
      status: "completed",
      task: null,
      failure_kind: null,
      cause_code: null,
      cause_class: null,
      worker: "w1",
      attempts: 1,
      started_at: "2026-11-29T16:00:00.000Z",
      ended_at: "2026-11-29T16:01:00.000Z",
      queued_ms: null,
      setup_ms: null,
      run_ms: null,
      collect_ms: null,
      tokens: 5,
      usage: null,
      tool_calls: 1,
      servers: null,
      ...more,
    },
    NOW,
  );
const open = (activation_id: string, more: Record<string, unknown> = {}): TableRow =>
  tableRow(
    {
      state: "running",
      activation_id,
      generation: 0,
      task: null,
      worker: "w1",
      attempt: 0,
      started_at: "2026-11-29T16:09:00.000Z",
      due_at: null,
      last: null,
      ...more,
    },
    NOW,
  );

it("a filter survives its address, and any address makes one", () => {
  const filters = fc.record({
    q: fc.string({ maxLength: 200 }),
    marks: fc.subarray(["completed", "incomplete", "failed", "refused", "cancelled", "running", "waiting"] as const),
    cause: fc.string({ maxLength: 50 }),
    worker: fc.string({ maxLength: 50 }),
    reward: fc.constantFrom("", "positive", "zero", "missing"),
    sort: fc.constantFrom("id", "state", "reward", "worker", "attempts", "started", "took", "tokens", "tool_calls"),
    descending: fc.boolean(),
    page: fc.integer({ min: 1, max: 1_000 }),
  });
  fc.assert(
    fc.property(filters, (filter) => {
      expect(filterIn(new URLSearchParams(searchOf(filter as Filter)))).toEqual(filter);
    }),
  );
  fc.assert(
    fc.property(fc.string(), (text) => {
      expect(filterIn(new URLSearchParams(text)).page).toBeGreaterThan(0);
    }),
  );
  expect(searchOf(filterIn(new URLSearchParams("sort=constructor&page=-1&status=x,failed")))).toBe("?status=failed");
});

it("rows are found by what they say, and sorted with what is not known last, whichever way", () => {
  const rows = [
    ended("act-10", { tokens: 7 }),
    ended("act-2", { tokens: null, cause_code: "exit_code", status: "failed" }),
    ended("act-1", { worker: "w2" }),
  ];
  const plain = filterIn(new URLSearchParams());
  const ids = (some: readonly TableRow[]): string[] => some.map(({ id }) => id);
  expect(ids(sorted(rows, { sort: "id", descending: false }))).toEqual(["act-1", "act-2", "act-10"]);
  expect(ids(sorted(rows, { sort: "tokens", descending: true }))).toEqual(["act-10", "act-1", "act-2"]);
  expect(ids(sorted(rows, { sort: "tokens", descending: false }))).toEqual(["act-1", "act-10", "act-2"]);
  expect(ids(matching(rows, { ...plain, q: " EXIT " }))).toEqual(["act-2"]);
  expect(ids(matching(rows, { ...plain, marks: ["failed"] }))).toEqual(["act-2"]);
  expect(ids(matching(rows, { ...plain, worker: "w2" }))).toEqual(["act-1"]);
  expect(ids(matching(rows, { ...plain, cause: "exit" }))).toEqual([]);
});

it("rows are found and sorted by their reward; one that was to be scored and has none is told from one that was not to be", () => {
  const rows = [ended("none", { reward: null }), ended("low", { reward: -0.5 }), ended("high", { reward: 0.25 }), ended("plain")];
  rows.push(open("open", { rollout: "verifying", state: "committing" }));
  const by = (reward: Filter["reward"]): string[] => matching(rows, { ...filterIn(new URLSearchParams()), reward }).map(({ id }) => id);
  expect(by("positive")).toEqual(["high"]);
  expect(by("zero")).toEqual(["low"]);
  expect(by("missing")).toEqual(["none"]);
  expect(by("")).toHaveLength(5);
  expect(sorted(rows, { sort: "reward", descending: true }).map(({ id }) => id)).toEqual(["high", "low", "none", "open", "plain"]);
  expect(rows.at(-1)).toMatchObject({ mark: "running", state: "verifying" });
});

it("an activation is one row: its end once that is told, and what it does now when it runs again", () => {
  const known = new Map([ended("a"), ended("b")].map((row) => [row.id, row]));
  const rows = mergedRows(known, [open("a"), open("b", { generation: 1 }), open("c", { state: "waiting", started_at: null }), open("c")]);
  expect(rows.map(({ id, state }) => `${id} ${state}`)).toEqual(["a completed", "b running", "c running"]);
  expect(rows[2]).toMatchObject({ took: 60_000, ended: null, attempts: 1 });
  expect(ended("a")).toMatchObject({ took: 60_000 });
});
