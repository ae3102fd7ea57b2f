// SPDX-License-Identifier: Apache-2.0
import { MARKS, type Mark } from "../charts/palette.ts";
import type { TableRow } from "./table-rows.ts";

const SORTS = ["id", "state", "reward", "worker", "attempts", "started", "took", "tokens", "tool_calls"] as const;
export type Sort = (typeof SORTS)[number];

/** Of a run with a resources server: all, those with a reward (a positive one; none above 0), or those that ended without one. */
export const REWARDS = ["", "positive", "zero", "missing"] as const;
export type RewardChoice = (typeof REWARDS)[number];

/** Which rows are shown, and how; the part of the address after `?` says it, so that it can be sent to somebody. */
export interface Filter {
  /** In the id, the task, the cause or the worker. */
  q: string;
  marks: readonly Mark[];
  cause: string;
  worker: string;
  reward: RewardChoice;
  sort: Sort;
  descending: boolean;
  /** From 1. */
  page: number;
}

/** Newest starts first. */
const PLAIN: Filter = { q: "", marks: [], cause: "", worker: "", reward: "", sort: "started", descending: true, page: 1 };
const MOST_CHARACTERS = 200;

/** Whatever is in an address makes a filter. Pure. */
export function filterIn(search: URLSearchParams): Filter {
  const text = (name: string): string => (search.get(name) ?? "").slice(0, MOST_CHARACTERS);
  const sort = SORTS.find((each) => each === text("sort").replace(/^-/, ""));
  const page = Number(text("page"));
  return {
    q: text("q"),
    marks: MARKS.filter((mark) => text("status").split(",").includes(mark)),
    cause: text("cause"),
    worker: text("worker"),
    reward: REWARDS.find((each) => each === text("reward")) ?? "",
    sort: sort ?? PLAIN.sort,
    descending: sort === undefined ? PLAIN.descending : text("sort").startsWith("-"),
    page: Number.isInteger(page) && page > 0 ? page : 1,
  };
}

/** The inverse; without what is as it is anyway. Pure. */
export function searchOf(filter: Filter): string {
  const search = new URLSearchParams();
  if (filter.q !== "") search.set("q", filter.q);
  if (filter.marks.length > 0) search.set("status", filter.marks.join(","));
  if (filter.cause !== "") search.set("cause", filter.cause);
  if (filter.worker !== "") search.set("worker", filter.worker);
  if (filter.reward !== "") search.set("reward", filter.reward);
  if (filter.sort !== PLAIN.sort || filter.descending !== PLAIN.descending)
    search.set("sort", (filter.descending ? "-" : "") + filter.sort);
  if (filter.page !== 1) search.set("page", String(filter.page));
  const text = search.toString();
  return text === "" ? "" : `?${text}`;
}

/** Pure. */
export function matching(rows: readonly TableRow[], { q, marks, cause, worker, reward }: Filter): TableRow[] {
  const wanted = q.trim().toLowerCase();
  return rows.filter(
    (row) =>
      (marks.length === 0 || marks.includes(row.mark)) &&
      (cause === "" || row.cause === cause) &&
      (worker === "" || row.worker === worker) &&
      isScored(row, reward) &&
      (wanted === "" || [row.id, row.task, row.cause, row.worker].some((text) => text?.toLowerCase().includes(wanted))),
  );
}

function isScored({ reward, scored, ended }: TableRow, wanted: RewardChoice): boolean {
  switch (wanted) {
    case "":
      return true;
    case "positive":
      return reward !== null && reward > 0;
    case "zero":
      return reward !== null && reward <= 0;
    case "missing":
      return scored && ended !== null && reward === null;
    default:
      return wanted satisfies never;
  }
}

/** What is not known comes last, whichever way. Pure. */
export function sorted(rows: readonly TableRow[], { sort, descending }: Pick<Filter, "sort" | "descending">): TableRow[] {
  const sign = descending ? -1 : 1;
  return rows.toSorted((a, b) => {
    const [one, other] = [a[sort], b[sort]];
    if (one === null || other === null) return one === other ? compared(a.id, b.id) : one === null ? 1 : -1;
    return sign * compared(one, other) || compared(a.id, b.id);
  });
}

/** "act-2" before "act-10". */
const names = new Intl.Collator("en", { numeric: true });

function compared(one: string | number, other: string | number): number {
  if (typeof one === "string" && typeof other === "string") return names.compare(one, other);
  return one < other ? -1 : one > other ? 1 : 0;
}
