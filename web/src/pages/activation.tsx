// SPDX-License-Identifier: Apache-2.0
import { useEffect, useState } from "preact/hooks";
import { Link } from "wouter-preact";
import type { CancelReply, RetryReply } from "../../../src/api/messages.ts";
import type { Story } from "../../../src/api/story.ts";
import { Artifacts } from "../activation/artifacts.tsx";
import { AttemptStory, Reason } from "../activation/attempt.tsx";
import { isAtWork, placeOf } from "../activation/place.ts";
import { Score } from "../activation/score.tsx";
import { Live } from "../activation/live.tsx";
import { Tokens } from "../activation/tokens.tsx";
import { useStory } from "../activation/use-story.ts";
import { askJson, segment } from "../ask.ts";
import { durationText } from "../../../src/contract/figures.ts";
import { visible, wholeText } from "../charts/words.ts";
import { ActionButton } from "../confirm.tsx";
import { Fact, isUnknown, Moment, Name, NotThere, State, Trouble } from "../parts.tsx";

/** One activation: why it ended as it did, or what it does now; then all that happened. */
export function ActivationPage({ id }: { id: string }) {
  const { story, events, error, again } = useStory(id);
  useEffect(() => {
    document.title = `${story === null ? "" : `${stateOf(story)} · `}${id} · Rollcall`;
  }, [story, id]);
  if (story === null && isUnknown(error)) return <NotThere what="activation" id={id} />;
  return (
    <>
      <p class="crumbs">
        <Link href="/">Runs</Link>
        {story !== null && story.run_id !== null && (
          <>
            {" / "}
            <Link href={`/runs/${segment(story.run_id)}`}>
              <Name>{story.run_id}</Name>
            </Link>
          </>
        )}
      </p>
      <div class="head">
        <h1>
          <Name>{id}</Name>
        </h1>
        {story !== null && <StoryState story={story} />}
        {story !== null && <Actions story={story} again={again} />}
      </div>
      <Trouble error={error} />
      {story === null ? (
        error === null && <p class="card empty">Reading …</p>
      ) : (
        <>
          {isLost(story) && <p class="notice">It has ended; its result is not in the store any more. What is left of it:</p>}
          {story.ending === null && story.now !== null && !isLost(story) && <Live now={story.now} events={events} />}
          {story.rollout !== undefined && <Score rollout={story.rollout} now={story.now} />}
          {story.ending !== null && <Ending story={story} />}
          {story.left_out.attempts > 0 && <p class="notice">{wholeText(story.left_out.attempts)} earlier attempts are in the store.</p>}
          {story.attempts.toReversed().map((attempt, index) => (
            <AttemptStory key={attempt.attempt} attempt={attempt} isLast={index === 0 && isTold(story)} />
          ))}
          <Artifacts story={story} />
        </>
      )}
    </>
  );
}

/** Its end is recorded, and the result was removed since. */
function isLost({ ending, now }: Story): boolean {
  return ending === null && now?.state === "ended";
}

function stateOf(story: Story): string {
  return story.ending?.status ?? story.now?.status ?? (story.now === null ? "" : placeOf(story.now));
}

function StoryState({ story }: { story: Story }) {
  const status = story.ending?.status ?? story.now?.status;
  if (status != null) return <State mark={status}>{status}</State>;
  return <State mark={story.now !== null && isAtWork(story.now) ? "running" : "waiting"}>{stateOf(story)}</State>;
}

/** The failure of the last attempt is the activation's, and stands above already. */
function isTold({ ending, attempts }: Story): boolean {
  return ending !== null && ending.failure?.failure_reason === attempts.at(-1)?.ending.failure?.failure_reason;
}

function Ending({ story }: { story: Story }) {
  const { ending, ended_at, task_id, attempts, usage, timing, answer, left_out, now } = story;
  return (
    <section class="card" aria-labelledby="ending">
      <h2 id="ending">{ending?.failure == null ? "How it ended" : "Why it ended"}</h2>
      {ending?.failure != null && <Reason failure={ending.failure} />}
      {ending?.incomplete_cause != null && <p class="why">Stopped at a limit: {ending.incomplete_cause}</p>}
      {ending?.failure == null && ending?.cause_class != null && <p class="dim">Class {ending.cause_class}</p>}
      <dl class="facts small">
        {task_id !== null && (
          <Fact name="Task">
            <Name>{`${task_id.taskset}/${task_id.task_id}`}</Name>
          </Fact>
        )}
        {ended_at !== null && (
          <Fact name="Ended">
            <Moment at={ended_at} date />
          </Fact>
        )}
        <Fact name="Attempts">{wholeText(attempts.length + left_out.attempts)}</Fact>
        {now !== null && now.generation > 0 && <Fact name="Generation">{now.generation + 1}</Fact>}
        {timing !== null && <Fact name="Waited">{timing.queued_ms === null ? "–" : durationText(timing.queued_ms)}</Fact>}
        {timing !== null && <Fact name="Set up">{durationText(timing.setup_ms)}</Fact>}
        {timing !== null && <Fact name="With Codex">{durationText(timing.run_ms)}</Fact>}
        {timing !== null && <Fact name="Collected">{durationText(timing.collect_ms)}</Fact>}
        <Tokens usage={usage} isUnknown={attempts.some(({ usage_unknown }) => usage_unknown)} />
      </dl>
      {answer !== null && answer !== "" && (
        <>
          <h3>Last words of the model</h3>
          <pre tabIndex={0} class="prose">
            {visible(answer)}
            {left_out.answer_characters > 0 ? `\n… ${wholeText(left_out.answer_characters)} characters more are in the result` : ""}
          </pre>
        </>
      )}
      <p>
        <a href={`/v1/activations/${segment(story.activation_id)}/result`}>The whole result, as JSON</a>
      </p>
    </section>
  );
}

const NOT_AGAIN: Record<NonNullable<RetryReply["why"]>, string> = {
  secrets_deleted: "It had secrets, which are deleted when it ends",
  job_removed: "It has no job in the queue",
};

/** Why it cannot be run again from here, and from where it can. */
function notAgain(why: NonNullable<RetryReply["why"]>, runId: string | null): string {
  const command = `rollcall enqueue TASKS.jsonl --run-id ${runId ?? "RUN"} --server ${location.origin} --again failed`;
  return `${NOT_AGAIN[why]}. From its task file it runs again, where it is one that failed, with ${command}`;
}

function Actions({ story, again }: { story: Story; again: () => void }) {
  const [told, setTold] = useState("");
  const base = `/v1/activations/${segment(story.activation_id)}`;
  const isOpen = story.ending === null && !isLost(story);
  const done = (text: string): void => {
    setTold(text);
    again();
  };
  return (
    <div class="actions">
      <div class="buttons">
        {isOpen ? (
          <ActionButton
            name="Cancel it"
            danger
            question="It is told to stop; what was seen of it is kept."
            act={async () => {
              const { outcome } = await askJson<CancelReply>(`${base}?reason=on+its+page`, { method: "DELETE" });
              return outcome === "done" ? "Cancelled." : outcome === "asked" ? "Told to stop." : "It had ended.";
            }}
            done={done}
          />
        ) : story.not_retryable !== null ? null : (
          <ActionButton
            name="Run it again"
            question="It is queued again as a new generation; this result is kept."
            act={async () => {
              const { outcome, why } = await askJson<RetryReply>(`${base}/retry`, { method: "POST" });
              if (outcome === "done") return "Queued again.";
              return why === null ? "Not queued: it has not ended." : `Not queued. ${notAgain(why, story.run_id)}`;
            }}
            done={done}
          />
        )}
      </div>
      {!isOpen && story.not_retryable !== null && <p class="dim">{notAgain(story.not_retryable, story.run_id)}</p>}
      <p role="status" class="told">
        {told}
      </p>
    </div>
  );
}
