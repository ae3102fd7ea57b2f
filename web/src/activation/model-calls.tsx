// SPDX-License-Identifier: Apache-2.0
import { threadLabel } from "../../../src/contract/thread-label.ts";
import { durationText } from "../../../src/contract/figures.ts";
import { wholeText } from "../charts/words.ts";
import { Name } from "../parts.tsx";
import type { StoryAttempt } from "./attempt.tsx";

type Evidence = NonNullable<StoryAttempt["evidence"]>;
type Tokens = Evidence["threads"][number]["tokens"];

/** What a session took of the model: by thread, and by call in the order of time. `from`: its start, in ms since 1970. */
export function ModelCalls({ evidence, left_out, from }: { evidence: Evidence; left_out: StoryAttempt["left_out"]; from: number }) {
  const { threads, model_calls } = evidence;
  if (threads.length === 0) return null;
  return (
    <>
      <h3>
        Model calls <span class="dim">{wholeText(model_calls.length + left_out.model_calls)}</span>
      </h3>
      <table class="rows stack" aria-label="Model calls by thread">
        <thead>
          <tr>
            <th scope="col">Thread</th>
            <NumberHead name="Calls" />
            <NumberHead name="Open" />
            <KindHeads />
          </tr>
        </thead>
        <tbody>
          {threads.map((thread) => (
            <tr key={thread.thread_id}>
              <th scope="row" data-name="Thread">
                <Name>{threadLabel(threads, thread.thread_id)}</Name>
              </th>
              <NumberCell name="Calls" value={thread.model_calls} />
              <NumberCell name="Open" value={thread.open_model_calls} />
              <KindCells tokens={thread.tokens} />
            </tr>
          ))}
        </tbody>
      </table>
      {left_out.threads > 0 && <p class="dim">{wholeText(left_out.threads)} more threads are in the result.</p>}
      {threads.some(({ open_model_calls }) => open_model_calls > 0) && (
        <p class="dim">Open calls may have been answered and billed; no record tells what they took.</p>
      )}
      {model_calls.length > 0 && (
        <details>
          <summary>Each model call</summary>
          <table class="rows stack" aria-label="Model calls">
            <thead>
              <tr>
                <NumberHead name="After" />
                <th scope="col">Thread</th>
                <th scope="col">For</th>
                <KindHeads />
                <th scope="col">Response</th>
              </tr>
            </thead>
            <tbody>
              {model_calls.map(({ thread_id, response_id, at, kind, tokens }, index) => (
                <tr key={index}>
                  <td data-name="After" class="number">
                    {at === null ? "–" : durationText(Math.max(0, Date.parse(at) - from))}
                  </td>
                  <th scope="row" data-name="Thread">
                    <Name>{threadLabel(threads, thread_id)}</Name>
                  </th>
                  <td data-name="For">{kind}</td>
                  <KindCells tokens={tokens} />
                  <td data-name="Response">{response_id === null ? "–" : <Name>{response_id}</Name>}</td>
                </tr>
              ))}
            </tbody>
          </table>
          {left_out.model_calls > 0 && <p class="dim">{wholeText(left_out.model_calls)} more are in the result.</p>}
        </details>
      )}
    </>
  );
}

const KINDS: [string, keyof Tokens][] = [
  ["Input", "input_tokens"],
  ["Cached", "cached_input_tokens"],
  ["Cache write", "cache_write_input_tokens"],
  ["Output", "output_tokens"],
  ["Reasoning", "reasoning_output_tokens"],
];

function KindHeads() {
  return (
    <>
      {KINDS.map(([name]) => (
        <NumberHead key={name} name={name} />
      ))}
    </>
  );
}

function KindCells({ tokens }: { tokens: Tokens }) {
  return (
    <>
      {KINDS.map(([name, kind]) => (
        <NumberCell key={name} name={name} value={tokens[kind]} />
      ))}
    </>
  );
}

function NumberHead({ name }: { name: string }) {
  return (
    <th scope="col" class="number">
      {name}
    </th>
  );
}

/** null: this Codex does not tell it. */
function NumberCell({ name, value }: { name: string; value: number | null }) {
  return (
    <td data-name={name} class="number">
      {value === null ? "–" : wholeText(value)}
    </td>
  );
}
