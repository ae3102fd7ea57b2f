// SPDX-License-Identifier: Apache-2.0
import type { Story } from "../../../src/api/story.ts";
import { durationText } from "../../../src/contract/figures.ts";
import { counted, visible, wholeText } from "../charts/words.ts";
import { Fact, Moment, Name, Shape, State } from "../parts.tsx";
import type { Mark } from "../charts/palette.ts";
import { ModelCalls } from "./model-calls.tsx";
import { Tokens } from "./tokens.tsx";

export type StoryAttempt = Story["attempts"][number];
type Server = StoryAttempt["servers"][number];
type Call = StoryAttempt["tool_calls"][number];

/** One attempt: what it was given, what it did and when, and why it ended. `open`: there is more than the head of it. */
export function AttemptStory({ attempt, isLast }: { attempt: StoryAttempt; isLast: boolean }) {
  const { worker, started_at, ended_at, charged, ending, servers, tool_calls, evidence, usage, usage_unknown, gaps, left_out } = attempt;
  const length = Math.max(1, Date.parse(ended_at) - Date.parse(started_at));
  const title = `attempt-${attempt.attempt}`;
  return (
    <section class="card" aria-labelledby={title}>
      <div class="head">
        <h2 id={title}>Attempt {attempt.attempt}</h2>
        <State mark={ending.status}>{ending.status}</State>
        {!charged && <span class="dim">not charged</span>}
      </div>
      <dl class="facts small">
        <Fact name="Started">
          <Moment at={started_at} />
        </Fact>
        <Fact name="Took">{durationText(length)}</Fact>
        <Fact name="Worker">
          <Name>{worker.id}</Name>
        </Fact>
        <Fact name="Codex">{worker.codex_version ?? "–"}</Fact>
        <Fact name="Sandbox">{worker.sandbox_provider ?? "–"}</Fact>
        <Tokens usage={usage} isUnknown={usage_unknown} />
      </dl>
      {!isLast && ending.failure !== null && <Reason failure={ending.failure} />}
      {servers.length > 0 && (
        <>
          <h3>Tool servers</h3>
          <ul class="servers">
            {servers.map((server) => (
              <ServerLine key={server.name} server={server} calls={tool_calls.filter((call) => call.server_name === server.name).length} />
            ))}
          </ul>
        </>
      )}
      {tool_calls.length > 0 && (
        <>
          <h3>
            Tool calls <span class="dim">{wholeText(tool_calls.length + left_out.tool_calls)}</span>
          </h3>
          <Calls calls={tool_calls} from={Date.parse(started_at)} length={length} />
          {left_out.tool_calls > 0 && <p class="dim">{wholeText(left_out.tool_calls)} more are in the result.</p>}
        </>
      )}
      {evidence !== null && <ModelCalls evidence={evidence} left_out={left_out} from={Date.parse(started_at)} />}
      {evidence !== null && <EvidenceFacts evidence={evidence} />}
      {gaps.length > 0 && (
        <details>
          <summary>Not observed, or left out ({wholeText(gaps.length + left_out.gaps)})</summary>
          <ul class="gaps">
            {gaps.map(({ code, detail }, index) => (
              <li key={index}>
                <code>{code}</code>
                {detail !== undefined && (
                  <>
                    {" "}
                    <Name>{detail}</Name>
                  </>
                )}
              </li>
            ))}
          </ul>
        </details>
      )}
    </section>
  );
}

type Failure = NonNullable<StoryAttempt["ending"]["failure"]>;

/** Why it ended as it did. */
export function Reason({ failure }: { failure: Failure }) {
  const { cause_code, failure_kind, server_names, terminal, failure_reason, stage } = failure;
  return (
    <div class="why">
      <p>
        <strong class="is-failed">{cause_code}</strong>
        {server_names.length > 0 && (
          <>
            {" of "}
            <strong>
              <Name>{server_names.join(", ")}</Name>
            </strong>
          </>
        )}
        <span class="dim">
          {" "}
          · {failure_kind} · stage {stage} · {terminal ? "final" : "may be tried again"}
        </span>
      </p>
      {failure_reason !== "" && <pre tabIndex={0}>{visible(failure_reason)}</pre>}
    </div>
  );
}

const SERVER_MARKS: Record<Server["state"], Mark> = {
  granted: "completed",
  skipped: "cancelled",
  unavailable: "failed",
  unknown: "incomplete",
};

function ServerLine({ server: { name, required, state, detail }, calls }: { server: Server; calls: number }) {
  const kind = required === null ? "" : required ? "required" : "optional";
  return (
    <li>
      <Shape mark={SERVER_MARKS[state]} />
      <strong>
        <Name>{name}</Name>
      </strong>
      <span>{state === "unknown" ? "not known to have been there" : state}</span>
      <span class="dim">
        {[kind, state === "granted" ? counted(calls, "call") : ""].filter((word) => word !== "").join(", ")}
        {detail !== null && (
          <>
            {": "}
            <Name>{detail}</Name>
          </>
        )}
      </span>
    </li>
  );
}

const CALL_MARKS: Record<Call["status"], Mark> = {
  completed: "completed",
  failed: "failed",
  timeout: "incomplete",
  cancelled: "cancelled",
  incomplete: "incomplete",
  unknown: "waiting",
};

function Calls({ calls, from, length }: { calls: readonly Call[]; from: number; length: number }) {
  return (
    <table class="rows calls stack">
      <thead>
        <tr>
          <th scope="col" class="number">
            After
          </th>
          <th scope="col">Tool</th>
          <th scope="col" aria-hidden="true" />
          <th scope="col" class="number">
            Took
          </th>
          <th scope="col">Outcome</th>
        </tr>
      </thead>
      <tbody>
        {calls.map((call) => {
          const { tool_call_id, tool_name, server_name, started_at, completed_at, duration_ms, status, error_type } = call;
          const at = started_at ?? completed_at;
          const after = at === null ? null : Date.parse(at) - from;
          return (
            <tr key={tool_call_id}>
              <td data-name="After" class="number">
                {after === null ? "–" : durationText(Math.max(0, after))}
              </td>
              <th scope="row" data-name="Tool">
                <Name>{tool_name}</Name>
                {server_name !== undefined && (
                  <span class="dim">
                    {" "}
                    <Name>{server_name}</Name>
                  </span>
                )}
              </th>
              <td class="bar-cell" aria-hidden="true">
                {after !== null && (
                  <span class="track">
                    <span class={`is-${CALL_MARKS[status]}`} style={place(after, duration_ms ?? 0, length)} />
                  </span>
                )}
              </td>
              <td data-name="Took" class="number">
                {duration_ms === null ? "–" : durationText(duration_ms)}
              </td>
              <td data-name="Outcome">
                <State mark={CALL_MARKS[status]}>{status}</State>
                {error_type !== null && (
                  <span class="under">
                    <Name>{error_type}</Name>
                  </span>
                )}
              </td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}

function place(after: number, took: number, length: number): { left: string; width: string } {
  const left = Math.min(99, Math.max(0, (100 * after) / length));
  return { left: `${left}%`, width: `${Math.max(0.8, Math.min(100 - left, (100 * took) / length))}%` };
}

function EvidenceFacts({ evidence }: { evidence: NonNullable<StoryAttempt["evidence"]> }) {
  const { turn_started, turn_completed, model_answered, exit_code, signal, stopped, launch_error, reconnects, oom_killed, cleanup_error } =
    evidence;
  const facts: [string, string | null][] = [
    ["Turn", turn_completed ? "completed" : turn_started ? "started, not completed" : "never started"],
    ["Model", model_answered === null ? "not known whether it answered" : model_answered ? "answered" : "never answered"],
    ["Codex ended", signal === null ? `exit code ${exit_code ?? "not known"}` : `killed by ${signal}`],
    ["Stopped by", stopped?.kind ?? null],
    ["Could not start", launch_error],
    ["Out of memory", oom_killed === true ? "the kernel killed a process" : null],
    ["Reconnects", reconnects > 0 ? String(reconnects) : null],
    ["Required tools never called", evidence.required_tools_missing.join(", ") || null],
    ["Clean-up failed", cleanup_error],
  ];
  return (
    <>
      <h3>Evidence</h3>
      <dl class="facts small">
        {facts.map(([name, text]) =>
          text === null ? null : (
            <Fact key={name} name={name}>
              <Name>{text}</Name>
            </Fact>
          ),
        )}
      </dl>
    </>
  );
}
