// SPDX-License-Identifier: Apache-2.0
import type { ActivationResult } from "../contract/result.ts";
import { printable } from "../printable.ts";
import type { JobDetails, JobFacts } from "./job-facts.ts";

/** A job as the dashboard shows it: what somebody looks for first, and where the rest is. */
export interface JobView {
  title: string;
  data: Record<string, unknown> & { pages: Pages };
  progress: Record<string, unknown> | number;
  /** null: nothing is wrong with it. */
  failedReason: string | null;
}

/** Paths of this server. */
interface Pages {
  activation: string;
  run: string | null;
  result: string;
}

const MAX_TITLE = 200;
const MAX_REASON = 2_000;
const MAX_INPUT = 2_000;
const MAX_LISTED = 50;

/** Pure. Short whatever the activation holds: its body and its result are behind links. */
export function jobView({ task_id, state, cause, fields }: JobFacts, details: JobDetails | null = null): JobView {
  const { activation_id, run_id, last_event, ...more } = state;
  const task = printable(task_id === null ? activation_id : `${task_id.taskset}/${task_id.task_id}`); // it may turn a line around
  const reason = details?.result?.failure?.failure_reason ?? null;
  const why = cause ?? (state.cancel === null || state.status !== "cancelled" ? null : cancelWords(state.cancel));
  const phase = state.rollout?.state ?? "ended";
  const now = state.status ?? (phase === "ended" || phase === "activation" ? state.state : phase);
  const words = [why, reason ?? fields.failedReason].filter((part) => part != null);
  const doing = last_event === null || state.status !== null ? null : (last_event.note ?? last_event.stage);
  return {
    title: cut([task, now, why ?? doing].filter((part) => part !== null).join(" · "), MAX_TITLE),
    data: {
      task: cut(task, MAX_TITLE),
      run_id,
      status: now,
      ...(why === null ? {} : { why: cut(why, MAX_REASON) }),
      ...(reason === null ? {} : { failure_reason: cut(reason, MAX_REASON) }),
      ...(state.attempt === null ? {} : { attempt: state.attempt }),
      ...(state.worker_id === null ? {} : { worker: state.worker_id }),
      last_event,
      pages: pagesOf(activation_id, run_id),
      ...(details === null ? {} : detailsView(activation_id, details)),
      activation: { activation_id, ...more },
    },
    progress: last_event === null ? 0 : { ...last_event, ...last_event.counts, counts: undefined },
    failedReason: words.length === 0 ? null : cut(words.join(": "), MAX_REASON),
  };
}

function pagesOf(activationId: string, runId: string | null): Pages {
  const id = encodeURIComponent(activationId);
  return {
    activation: `/activations/${id}`,
    run: runId === null ? null : `/runs/${encodeURIComponent(runId)}`,
    result: `/v1/activations/${id}/result`,
  };
}

function detailsView(activationId: string, { activation, data_bytes, result }: JobDetails): Record<string, unknown> {
  return {
    data_bytes,
    ...(activation === null ? {} : { asked: askedView(activation) }),
    ...(result === null ? {} : { ended: endedView(activationId, result) }),
  };
}

/** By name: what is not named here (headers, variables, files) does not come out, sealed or not. */
function askedView({ input, model, sandbox, tool_grants, max_attempts, priority }: Record<string, unknown>): Record<string, unknown> {
  const grants = Array.isArray(tool_grants) ? (tool_grants as Record<string, unknown>[]) : [];
  return {
    input: cut(typeof input === "string" ? input : JSON.stringify(input ?? null), MAX_INPUT),
    model: namedIn(model, "name"),
    sandbox: namedIn(sandbox, "provider"),
    tool_grants: grants.slice(0, MAX_LISTED).map(({ name, required }) => ({ name, required })),
    max_attempts,
    priority,
  };
}

function endedView(activationId: string, result: ActivationResult): Record<string, unknown> {
  const { ended_at, incomplete_cause, cause_class, usage, timing, artifacts, attempts, rollout, reward = null } = result;
  const attempt = attempts.at(-1)?.attempt ?? 0;
  return {
    ended_at,
    incomplete_cause,
    cause_class,
    ...(rollout === undefined ? {} : { reward, verified: rollout.verified }),
    usage,
    timing,
    attempts: attempts.slice(-MAX_LISTED).map((each) => ({
      attempt: each.attempt,
      worker: each.worker.id,
      status: each.status,
      cause_code: each.failure?.cause_code ?? null,
    })),
    artifacts: artifacts.slice(0, MAX_LISTED).map(({ path, bytes, quarantined }) => ({
      at: `/v1/artifacts/${encodeURIComponent(activationId)}/${attempt}/${path.split("/").map(encodeURIComponent).join("/")}`,
      bytes,
      ...(quarantined ? { quarantined } : {}),
    })),
    artifacts_in_all: artifacts.length,
  };
}

function namedIn(holder: unknown, name: string): unknown {
  return typeof holder === "object" && holder !== null ? (holder as Record<string, unknown>)[name] : undefined;
}

function cancelWords({ by, reason }: { by: string; reason: string }): string {
  return `cancelled by ${by}${reason === "" ? "" : `: ${reason}`}`;
}

function cut(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most)} [... ${text.length - most} characters more]`;
}
