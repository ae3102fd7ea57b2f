// SPDX-License-Identifier: Apache-2.0
import type { StateReply } from "../../../src/api/messages.ts";
import { isAtWork, placeOf } from "./place.ts";
import { roughDurationText } from "../../../src/contract/figures.ts";
import { wholeText } from "../charts/words.ts";
import { Fact, Moment, Name, State } from "../parts.tsx";
import { useNow } from "../repeat.ts";
import type { LiveEvent } from "./use-story.ts";

const SHOWN = 40;

/** What happens in an activation that has not ended, as it comes. */
export function Live({ now, events }: { now: StateReply; events: readonly LiveEvent[] }) {
  const clock = useNow(true);
  const last = events[0] ?? now.last_event;
  const counts = events.find((event) => event.counts !== undefined)?.counts ?? now.last_event?.counts;
  const has = now.worker_id !== null;
  const start = events.findLast((event) => event.attempt === now.attempt && event.stage === "starting");
  return (
    <section class="card live" aria-labelledby="live">
      <div class="head">
        <h2 id="live">Now</h2>
        <State mark={isAtWork(now) ? "running" : "waiting"}>{placeOf(now)}</State>
        <span class="dim">updates by itself</span>
      </div>
      <dl class="facts small">
        {now.position !== null && <Fact name="Before it in the queue">{wholeText(now.position)}</Fact>}
        {now.due_at !== null && (
          <Fact name="Looked at again">
            <Moment at={now.due_at} />
          </Fact>
        )}
        {now.attempt !== null && <Fact name="Attempt">{now.attempt}</Fact>}
        {now.worker_id !== null && (
          <Fact name="Worker">
            <Name>{now.worker_id}</Name>
          </Fact>
        )}
        {has && start !== undefined && <Fact name="For">{roughDurationText(Math.max(0, clock - Date.parse(start.at)))}</Fact>}
        {has && counts !== undefined && <Fact name="Tool calls">{wholeText(counts.tool_calls)}</Fact>}
        {has && counts?.tokens != null && <Fact name="Tokens">{wholeText(counts.tokens)}</Fact>}
        {has && last !== undefined && last !== null && (
          <Fact name="Last event">{roughDurationText(Math.max(0, clock - Date.parse(last.at)))} ago</Fact>
        )}
      </dl>
      {now.rollout !== undefined && <AtServer rollout={now.rollout} isShown={now.attempt !== null} />}
      {now.cancel !== null && (
        <p class="notice" role="status">
          To be cancelled: asked by {now.cancel.by}
          {now.cancel.reason === "" ? "." : `: ${now.cancel.reason}`}
        </p>
      )}
      {events.length > 0 && (
        <ol class="events" aria-label="Events, the newest first" reversed>
          {events.slice(0, SHOWN).map(({ id, at, stage, note, attempt }) => (
            <li key={id}>
              <Moment at={at} /> <span class="stage">{stage}</span>
              {note !== undefined && <Name>{note}</Name>}
              {attempt > 0 && <span class="dim">attempt {attempt}</span>}
            </li>
          ))}
        </ol>
      )}
    </section>
  );
}

const PHASES: Record<NonNullable<StateReply["rollout"]>["state"], string> = {
  waiting: "waits for a place, or for its next attempt",
  seeding: "prepares its session",
  activation: "in its session",
  verifying: "scores it",
  closing: "closes its session",
  ended: "over",
};

/** Where a rollout is that has not ended. */
function AtServer({ rollout, isShown }: { rollout: NonNullable<StateReply["rollout"]>; isShown: boolean }) {
  const { state, attempt, failed_attempts, failed_tries, unreachable_since } = rollout;
  return (
    <dl class="facts small more">
      <Fact name="Resources server">{PHASES[state]}</Fact>
      {!isShown && <Fact name="Attempt">{attempt}</Fact>}
      {failed_attempts > 0 && <Fact name="Failed attempts">{wholeText(failed_attempts)}</Fact>}
      {failed_tries > 0 && <Fact name="Failed tries">{wholeText(failed_tries)}</Fact>}
      {unreachable_since !== null && (
        <Fact name="Out of reach since">
          <Moment at={unreachable_since} />
        </Fact>
      )}
    </dl>
  );
}
