// SPDX-License-Identifier: Apache-2.0
import { useEffect, useState } from "preact/hooks";
import { Link, useSearchParams } from "wouter-preact";
import type { RunListReply } from "../../../src/api/routes/run-list.ts";
import { askJson, segment } from "../ask.ts";
import { wholeText } from "../charts/words.ts";
import { Moment, Name, State, Trouble } from "../parts.tsx";
import { useRepeated } from "../repeat.ts";

type ListedRun = RunListReply["runs"][number];

const EVERY_MS = 4_000;

/** All runs, those that something was queued of last first. */
export function RunsPage() {
  const [search] = useSearchParams();
  const after = search.get("after");
  const [list, setList] = useState<RunListReply | null>(null);
  const query = after === null ? "" : `?after=${segment(after)}`;
  const { error } = useRepeated(async (signal) => {
    setList(await askJson<RunListReply>(`/v1/runs${query}`, { signal }));
    return EVERY_MS;
  }, query);
  useEffect(() => {
    document.title = "Runs · Rollcall";
  }, []);
  return (
    <>
      <h1>Runs</h1>
      <Trouble error={error} />
      {list !== null && list.runs.length === 0 && (
        <p class="card empty">
          {after === null ? "Nothing was queued here yet. See /docs for how to." : "There are no more."}{" "}
          {after !== null && <Link href="/">The newest</Link>}
        </p>
      )}
      {list !== null && list.runs.length > 0 && (
        <div class="card flush">
          <table class="rows stack">
            <thead>
              <tr>
                <th scope="col">Run</th>
                <th scope="col">State</th>
                <th scope="col">Progress</th>
                <th scope="col" class="number">
                  Failures
                </th>
                <th scope="col">Queued last</th>
              </tr>
            </thead>
            <tbody>
              {list.runs.map((run) => (
                <Row key={run.run_id} run={run} />
              ))}
            </tbody>
          </table>
        </div>
      )}
      {list !== null && (list.next !== null || after !== null) && (
        <nav class="pager" aria-label="More runs">
          {after !== null && <Link href="/">Newest</Link>}
          {list.next !== null && <Link href={`/?after=${segment(list.next)}`}>Older</Link>}
        </nav>
      )}
    </>
  );
}

function Row({ run }: { run: ListedRun }) {
  const { run_id, ended, open, with_failure, queued_at } = run;
  const total = ended + open;
  return (
    <tr>
      <th scope="row" data-name="Run">
        <Link href={`/runs/${segment(run_id)}`}>
          <Name>{run_id}</Name>
        </Link>
      </th>
      <td data-name="State">
        <RunStateMark run={run} />
      </td>
      <td data-name="Progress">
        <span class="meter" aria-hidden="true">
          <span style={{ width: `${total === 0 ? 0 : (100 * ended) / total}%` }} />
        </span>
        <span class="number">
          {wholeText(ended)} of {wholeText(total)}
        </span>
      </td>
      <td data-name="Failures" class="number">
        {with_failure === 0 ? "0" : <span class="is-failed strong">{wholeText(with_failure)}</span>}
      </td>
      <td data-name="Queued last">
        <Moment at={queued_at} />
      </td>
    </tr>
  );
}

function RunStateMark({ run: { open, running, paused, held_back } }: { run: ListedRun }) {
  if (open === 0) return <State mark="completed">ended</State>;
  if (held_back) return <State mark="failed">holds itself back</State>;
  if (paused) return <State mark="cancelled">paused</State>;
  return running > 0 ? <State mark="running">{wholeText(running)} running</State> : <State mark="waiting">waiting</State>;
}
