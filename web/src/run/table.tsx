// SPDX-License-Identifier: Apache-2.0
import type { ComponentChildren } from "preact";
import { useId, useMemo } from "preact/hooks";
import { Link, useLocation, useSearch } from "wouter-preact";
import { MARKS, type Mark } from "../charts/palette.ts";
import { durationText } from "../../../src/contract/figures.ts";
import { countText, rewardText, wholeText } from "../charts/words.ts";
import { ActivationLink, Moment, Name, State } from "../parts.tsx";
import { filterIn, matching, REWARDS, searchOf, sorted, type Filter, type RewardChoice, type Sort } from "./filter.ts";
import type { TableRow } from "./table-rows.ts";

// Pages, not one endless list: everything is in the document as it stands there, so that the keyboard, a screen reader and the
// browser's own search find it, and the place in it is part of the address.
const PER_PAGE = 100;

interface Column {
  sort: Sort;
  name: string;
  number?: true;
}

const ALL_COLUMNS: readonly Column[] = [
  { sort: "id", name: "Activation" },
  { sort: "state", name: "Outcome" },
  { sort: "reward", name: "Reward", number: true },
  { sort: "worker", name: "Worker" },
  { sort: "attempts", name: "Attempts", number: true },
  { sort: "started", name: "Started" },
  { sort: "took", name: "Time", number: true },
  { sort: "tokens", name: "Tokens", number: true },
  { sort: "tool_calls", name: "Calls", number: true },
];

const REWARD_NAMES: Record<RewardChoice, string> = { "": "all", positive: "above 0", zero: "0 or below", missing: "ended without one" };

/** All activations of a run; the address says which are shown, and how. */
export function Table({ rows, complete }: { rows: readonly TableRow[]; complete: boolean }) {
  const [path, navigate] = useLocation();
  const search = useSearch();
  const filter = useMemo(() => filterIn(new URLSearchParams(search)), [search]);
  const to = (change: Partial<Filter>): string => path + searchOf({ ...filter, page: 1, ...change });
  const change = (some: Partial<Filter>): void => navigate(to(some), { replace: true });
  const shown = useMemo(() => sorted(matching(rows, filter), filter), [rows, filter]);
  const pages = Math.max(1, Math.ceil(shown.length / PER_PAGE));
  const page = Math.min(filter.page, pages);
  const first = (page - 1) * PER_PAGE;
  const causes = useMemo(() => distinct(rows, "cause"), [rows]);
  const workers = useMemo(() => distinct(rows, "worker"), [rows]);
  const isFiltered = filter.q !== "" || filter.marks.length > 0 || filter.cause !== "" || filter.worker !== "" || filter.reward !== "";
  const isScored = useMemo(() => rows.some(({ scored }) => scored), [rows]);
  const columns = isScored ? ALL_COLUMNS : ALL_COLUMNS.filter(({ sort }) => sort !== "reward");
  return (
    <section class="card flush" id="activations" aria-labelledby="activations-title">
      <h2 id="activations-title">Activations</h2>
      <form class="filters" role="search" aria-label="Activations" onSubmit={(event) => event.preventDefault()}>
        <div class="field wide">
          <label for="find">Find</label>
          <input
            id="find"
            type="search"
            value={filter.q}
            placeholder="id, task, cause, worker"
            onInput={(event) => change({ q: event.currentTarget.value })}
          />
        </div>
        <Choice name="Outcome" value={filter.marks.join(",")} onChange={(value) => change({ marks: value.split(",").filter(isMark) })}>
          <option value="">all</option>
          {filter.marks.length > 1 && <option value={filter.marks.join(",")}>{filter.marks.join(", ")}</option>}
          {MARKS.map((mark) => (
            <option key={mark} value={mark}>
              {mark}
            </option>
          ))}
        </Choice>
        <Choice name="Cause" value={filter.cause} onChange={(cause) => change({ cause })}>
          <Options found={causes} chosen={filter.cause} />
        </Choice>
        <Choice name="Worker" value={filter.worker} onChange={(worker) => change({ worker })}>
          <Options found={workers} chosen={filter.worker} />
        </Choice>
        {(isScored || filter.reward !== "") && (
          <Choice name="Reward" value={filter.reward} onChange={(value) => change({ reward: value as RewardChoice })}>
            {REWARDS.map((each) => (
              <option key={each} value={each}>
                {REWARD_NAMES[each]}
              </option>
            ))}
          </Choice>
        )}
        <Choice
          name="Sort by"
          class="small-only"
          value={`${filter.sort} ${filter.descending ? "down" : "up"}`}
          onChange={(value) => change({ sort: value.split(" ")[0] as Sort, descending: value.endsWith("down") })}
        >
          {columns.flatMap(({ sort, name }) =>
            ["down", "up"].map((way) => (
              <option key={`${sort} ${way}`} value={`${sort} ${way}`}>
                {name} {way === "down" ? "↓" : "↑"}
              </option>
            )),
          )}
        </Choice>
        {isFiltered && (
          <button type="button" onClick={() => change({ q: "", marks: [], cause: "", worker: "", reward: "" })}>
            Show all
          </button>
        )}
      </form>
      <Pager {...{ first, page, pages, to }} shown={shown.length} all={rows.length} complete={complete} />
      {shown.length > 0 && (
        <table class="rows stack">
          <thead>
            <tr>
              {columns.map(({ sort, name, number }) => {
                const isSorted = filter.sort === sort;
                const descending = isSorted ? !filter.descending : number === true || sort === "started";
                return (
                  <th
                    key={sort}
                    scope="col"
                    class={number ? "number" : ""}
                    aria-sort={isSorted ? (filter.descending ? "descending" : "ascending") : undefined}
                  >
                    <button type="button" class="sort" onClick={() => change({ sort, descending })}>
                      {name}
                      <span aria-hidden="true">{isSorted ? (filter.descending ? " ↓" : " ↑") : ""}</span>
                    </button>
                  </th>
                );
              })}
              <th scope="col">Servers</th>
            </tr>
          </thead>
          <tbody>
            {shown.slice(first, first + PER_PAGE).map((row) => (
              <Row key={row.id} row={row} isScored={isScored} />
            ))}
          </tbody>
        </table>
      )}
      {pages > 1 && <Pager {...{ first, page, pages, to }} shown={shown.length} all={rows.length} complete={complete} />}
    </section>
  );
}

function Row({ row, isScored }: { row: TableRow; isScored: boolean }) {
  const { id, mark, state, task, cause, reward, worker, attempts, started, took, tokens, tool_calls, servers, note } = row;
  return (
    <tr>
      <th scope="row" data-name="Activation">
        <ActivationLink id={id} />
        {task !== null && task !== id && (
          <span class="under">
            <Name>{task}</Name>
          </span>
        )}
      </th>
      <td data-name="Outcome">
        <State mark={mark}>{state}</State>
        {(cause ?? note) !== null && <span class="under">{cause ?? note}</span>}
      </td>
      {isScored && (
        <td data-name="Reward" class="number">
          {reward === null ? "–" : rewardText(reward)}
        </td>
      )}
      <td data-name="Worker">{worker === null ? "–" : <Name>{worker}</Name>}</td>
      <td data-name="Attempts" class="number">
        {attempts ?? "–"}
      </td>
      <td data-name="Started">{started === null ? "–" : <Moment at={started} />}</td>
      <td data-name="Time" class="number">
        {took === null ? "–" : durationText(took)}
      </td>
      <td data-name="Tokens" class="number">
        {tokens === null ? "–" : countText(tokens)}
      </td>
      <td data-name="Calls" class="number">
        {tool_calls === null ? "–" : wholeText(tool_calls)}
      </td>
      <td data-name="Servers">{servers === null ? "–" : serversText(servers)}</td>
    </tr>
  );
}

function serversText(servers: NonNullable<TableRow["servers"]>): string {
  const words = Object.entries(servers).flatMap(([state, count]) => (count > 0 ? [`${count} ${state}`] : []));
  return words.length === 0 ? "none" : words.join(", ");
}

interface PagerProps {
  first: number;
  page: number;
  pages: number;
  shown: number;
  all: number;
  complete: boolean;
  to: (change: Partial<Filter>) => string;
}

function Pager({ first, page, pages, shown, all, complete, to }: PagerProps) {
  const range = shown === 0 ? "None" : `${wholeText(first + 1)}–${wholeText(Math.min(shown, first + PER_PAGE))} of ${wholeText(shown)}`;
  return (
    <nav class="pager" aria-label="Pages of the table">
      <span class="number">
        {complete ? range : "Reading …"}
        {complete && shown < all && <span class="dim"> (of {wholeText(all)})</span>}
      </span>
      {page > 1 && (
        <Link href={to({ page: page - 1 })} replace>
          Previous
        </Link>
      )}
      {page < pages && (
        <Link href={to({ page: page + 1 })} replace>
          Next
        </Link>
      )}
    </nav>
  );
}

interface ChoiceProps {
  name: string;
  value: string;
  class?: string;
  onChange: (value: string) => void;
  children: ComponentChildren;
}

function Choice({ name, value, onChange, children, class: kind = "" }: ChoiceProps) {
  const id = useId();
  return (
    <div class={`field ${kind}`}>
      <label for={id}>{name}</label>
      <select id={id} value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        {children}
      </select>
    </div>
  );
}

/** The chosen one is there even when no row has it just now. */
function Options({ found, chosen }: { found: readonly string[]; chosen: string }) {
  const all = chosen === "" || found.includes(chosen) ? found : [chosen, ...found];
  return (
    <>
      <option value="">all</option>
      {all.map((each) => (
        <option key={each} value={each}>
          {each}
        </option>
      ))}
    </>
  );
}

function distinct(rows: readonly TableRow[], field: "cause" | "worker"): string[] {
  return [...new Set(rows.flatMap((row) => row[field] ?? []))].toSorted();
}

function isMark(text: string): text is Mark {
  return (MARKS as readonly string[]).includes(text);
}
