// SPDX-License-Identifier: Apache-2.0
import { Link } from "wouter-preact";
import type { RunReply } from "../../../src/api/run-view.ts";
import { MARK_NAMES, type Mark } from "../charts/palette.ts";
import { roughDurationText } from "../../../src/contract/figures.ts";
import { wholeText } from "../charts/words.ts";
import { Fact, Moment, Shape, State } from "../parts.tsx";
import { filterIn, searchOf } from "./filter.ts";

/** How far a run is, at a glance. */
export function Summary({ run }: { run: RunReply }) {
  const { total, ended, running, waiting, parked, delayed, rollouts } = run;
  const over = Object.values(ended).reduce((sum, each) => sum + each, 0);
  // Of what is with the resources server, as the table has it.
  const atWork = rollouts === null ? 0 : Math.min(rollouts.with_server, rollouts.verifying + rollouts.closing);
  const counts: [Mark, number][] = [
    ["completed", ended.completed],
    ["incomplete", ended.incomplete],
    ["failed", ended.failed],
    ["refused", ended.refused],
    ["cancelled", ended.cancelled],
    ["running", running + atWork],
    ["waiting", waiting + parked + delayed + (rollouts?.with_server ?? 0) - atWork],
  ];
  const share = total === 0 ? 0 : Math.floor((100 * over) / total);
  const text = counts.map(([mark, count]) => `${wholeText(count)} ${MARK_NAMES[mark]}`).join(", ");
  return (
    <section class="card" aria-labelledby="progress">
      <h2 id="progress" class="hidden">
        Progress
      </h2>
      <dl class="facts">
        <Fact name="Ended">
          <strong class="big">{share} %</strong> <span class="dim">{`${wholeText(over)} of ${wholeText(total)}`}</span>
        </Fact>
        <Fact name="Left">
          {over === total ? "nothing" : run.eta_seconds === null ? "not known yet" : `about ${roughDurationText(run.eta_seconds * 1_000)}`}
        </Fact>
        <Fact name="Rate">{run.ended_per_minute === null ? "–" : `${run.ended_per_minute.toFixed(1)} / min`}</Fact>
        <Fact name={rollouts === null ? "Running" : "Sessions running"}>
          {wholeText(running)}
          {run.limit !== null && <span class="dim"> of at most {wholeText(run.limit)}</span>}
        </Fact>
        <Fact name={rollouts === null ? "Waiting" : "Sessions waiting"}>
          {wholeText(waiting)}
          <span class="dim">{waitsFor(run)}</span>
        </Fact>
        {run.budget.not_after !== null && (
          <Fact name="Starts nothing after">
            <Moment at={run.budget.not_after} />
          </Fact>
        )}
      </dl>
      {rollouts !== null && <WithServer rollouts={rollouts} />}
      <div class="progress" role="img" aria-label={`${share} % ended: ${text}`}>
        {counts.map(([mark, count]) => count > 0 && <span key={mark} class={`part is-${mark}`} style={{ flexGrow: count }} />)}
      </div>
      <ul class="legend">
        {counts.map(([mark, count]) => (
          <li key={mark}>
            <Link
              href={`${location.pathname}${searchOf({ ...filterIn(new URLSearchParams()), marks: [mark] })}#activations`}
              onClick={toTable}
              class={count === 0 ? "none" : ""}
            >
              <State mark={mark}>{MARK_NAMES[mark]}</State> <span class="number">{wholeText(count)}</span>
            </Link>
          </li>
        ))}
      </ul>
    </section>
  );
}

const PHASES = [
  ["waiting", "Wait for it"],
  ["seeding", "Seeding"],
  ["activation", "In their session"],
  ["verifying", "Verifying"],
  ["closing", "Closing"],
] as const;

/** Where the rollouts are that have not ended. */
function WithServer({ rollouts }: { rollouts: NonNullable<RunReply["rollouts"]> }) {
  return (
    <>
      <h3>With the resources server</h3>
      <dl class="facts small">
        {PHASES.map(([phase, name]) => (
          <Fact key={phase} name={name}>
            {wholeText(rollouts[phase])}
          </Fact>
        ))}
      </dl>
    </>
  );
}

/** A link that filters the table shows it, too. */
export function toTable(): void {
  document.querySelector("#activations")?.scrollIntoView({ block: "start" });
}

function waitsFor({ parked, delayed, delayed_for }: RunReply): string {
  const words = [
    parked > 0 ? `${wholeText(parked)} parked` : "",
    delayed_for.next_attempt > 0 ? `${wholeText(delayed_for.next_attempt)} for their next attempt` : "",
    delayed_for.model_server > 0 ? `${wholeText(delayed_for.model_server)} for the model server` : "",
    delayed_for.able_worker > 0 ? `${wholeText(delayed_for.able_worker)} for a worker that can run them` : "",
  ].filter((part) => part !== "");
  return words.length === 0 || parked + delayed === 0 ? "" : `, ${words.join(", ")}`;
}

/** Why it does not go on by itself. */
export function HeldBack({ run: { paused, breaker, budget } }: { run: RunReply }) {
  return (
    <>
      {breaker !== null && (
        <p class="trouble" role="status">
          <Shape mark="failed" /> Holds itself back since <Moment at={breaker.opened_at} />: {breaker.cause_code}. {breaker.reason}{" "}
          {breaker.retry_in_seconds !== null && `One may try in ${roughDurationText(breaker.retry_in_seconds * 1_000)}.`}
        </p>
      )}
      {paused !== null && (
        <p class="notice" role="status">
          Paused by {paused.by} at <Moment at={paused.at} />
          {paused.reason === "" ? "." : `: ${paused.reason}`} What runs goes on; nothing more starts.
        </p>
      )}
      {budget.spent !== null && (
        <p class="notice" role="status">
          Its budget is spent ({budget.spent}; {wholeText(budget.used.tokens)} tokens, {wholeText(budget.used.model_calls)} model calls
          used). What runs goes on; nothing more starts.
        </p>
      )}
    </>
  );
}
