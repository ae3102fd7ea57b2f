// SPDX-License-Identifier: Apache-2.0
import { useEffect, useState } from "preact/hooks";
import { Link } from "wouter-preact";
import type { RunReply } from "../../../src/api/run-view.ts";
import { isUnknown, Name, NotThere, State, Trouble } from "../parts.tsx";
import { Actions } from "../run/actions.tsx";
import { Distributions } from "../run/distributions.tsx";
import { Failures } from "../run/failures.tsx";
import { HeldBack, Summary } from "../run/summary.tsx";
import { Table } from "../run/table.tsx";
import { Timeline } from "../run/timeline.tsx";
import { useRun } from "../run/use-run.ts";
import { paletteOf, type Theme } from "../theme.ts";

/** One run: how far it is, what went wrong, who worked when, and all its activations. */
export function RunPage({ runId, theme }: { runId: string; theme: Theme }) {
  const { run, rows, complete, error, again } = useRun(runId);
  const narrow = useNarrow();
  const palette = paletteOf(theme);
  useEffect(() => {
    document.title = `${run === null ? "" : `${percent(run)} · `}${runId} · Rollcall`;
  }, [run, runId]);
  if (run === null && isUnknown(error)) return <NotThere what="run" id={runId} />;
  return (
    <>
      <p class="crumbs">
        <Link href="/">Runs</Link>
      </p>
      <div class="head">
        <h1>
          <Name>{runId}</Name>
        </h1>
        {run !== null && <RunState run={run} />}
        {run !== null && <Actions run={run} rows={rows} again={again} />}
      </div>
      <Trouble error={error} />
      {run === null ? (
        error === null && <p class="card empty">Reading …</p>
      ) : (
        <>
          <HeldBack run={run} />
          <Summary run={run} />
          <Failures failures={run.failures} />
          <Timeline rows={rows} palette={palette} narrow={narrow} />
          <Distributions rows={rows} palette={palette} />
          <Table rows={rows} complete={complete} />
        </>
      )}
    </>
  );
}

function RunState({ run }: { run: RunReply }) {
  const withServer = run.rollouts?.with_server ?? 0;
  const open = run.waiting + run.parked + run.delayed + run.running + withServer;
  if (open === 0) return <State mark="completed">ended</State>;
  if (run.breaker !== null) return <State mark="failed">holds itself back</State>;
  if (run.budget.spent !== null) return <State mark="cancelled">budget spent</State>;
  if (run.paused !== null) return <State mark="cancelled">paused</State>;
  return run.running + withServer > 0 ? <State mark="running">running</State> : <State mark="waiting">waiting</State>;
}

function percent({ total, ended }: RunReply): string {
  const over = Object.values(ended).reduce((sum, each) => sum + each, 0);
  return `${total === 0 ? 0 : Math.floor((100 * over) / total)} %`;
}

const phone = matchMedia("(max-width: 640px)");

function useNarrow(): boolean {
  const [narrow, setNarrow] = useState(phone.matches);
  useEffect(() => {
    const follow = (): void => setNarrow(phone.matches);
    phone.addEventListener("change", follow);
    return () => phone.removeEventListener("change", follow);
  }, []);
  return narrow;
}
