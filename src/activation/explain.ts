// SPDX-License-Identifier: Apache-2.0
import type { ObservationGap, ToolCallRecord } from "../contract/observation.ts";
import { isUsageUnknown } from "../contract/session-usage.ts";
import type { ActivationResult, Artifact, Attempt, Evidence, RolloutFacts } from "../contract/result.ts";

type Ending = Pick<ActivationResult, "status" | "incomplete_cause" | "cause_class" | "failure">;

/** One activation for a person: what was asked, and all that happened, in the order in which it did. */
export interface Explanation extends Pick<
  ActivationResult,
  "activation_id" | "run_id" | "generation" | "task_id" | "capture_key" | "ended_at" | "usage" | "timing"
> {
  attempts: ExplainedAttempt[];
  /** How the activation ended, which a cancel may make other than its last attempt. */
  ending: Ending;
  /** Only of a rollout with a resources server that is over; `reward` null = it was not scored. */
  rollout?: RolloutFacts & { reward: number | null; verification: Record<string, unknown> | null };
  artifacts: Artifact[];
}

export interface ExplainedAttempt extends Pick<
  Attempt,
  "attempt" | "capture_key" | "worker" | "started_at" | "ended_at" | "charged" | "usage"
> {
  /** It may have called the model, and nothing is known of what it took. */
  usage_unknown: boolean;
  servers: ExplainedServer[];
  tool_calls: Omit<ToolCallRecord, "kind" | "invocation_id" | "sandbox_id" | "timing_source">[];
  ending: Ending;
  evidence: Evidence | null;
  /** What is not told by servers and ending already. */
  gaps: ObservationGap[];
}

export interface ExplainedServer {
  name: string;
  required: boolean | null;
  state: "granted" | "skipped" | "unavailable" | "unknown";
  /** Why, as it was observed. */
  detail: string | null;
}

/** What each gap about a server makes of it; all of them name it in their detail. */
const SERVER_STATES: Partial<Record<ObservationGap["code"], ExplainedServer["state"]>> = {
  mcp_server_skipped: "skipped",
  tool_grant_skipped: "skipped",
  mcp_server_unavailable: "unavailable",
  mcp_server_state_unknown: "unknown",
};
/** Their text is the failure's. */
const TOLD_BY_ENDING = new Set(["agent_startup_failed", "harness_not_run", "agent_activation_interrupted"]);

/** Pure. Results of earlier versions may lack what attempts tell by now. */
export function explain(result: ActivationResult): Explanation {
  const { activation_id, run_id, generation, task_id, capture_key, ended_at, usage, timing, artifacts, rollout, reward, verification } =
    result;
  const attempts = result.attempts.toSorted((a, b) => a.attempt - b.attempt).map(explainAttempt);
  return {
    activation_id,
    run_id,
    generation,
    task_id,
    capture_key,
    attempts,
    ending: endingOf(result),
    ...(rollout === undefined ? {} : { rollout: { ...rollout, reward: reward ?? null, verification: verification ?? null } }),
    artifacts,
    usage,
    timing,
    ended_at,
  };
}

/** One attempt of it, as its record tells. Pure. */
export function explainAttempt(made: Attempt): ExplainedAttempt {
  const { attempt, capture_key, worker, started_at, ended_at, charged, observations } = made;
  const { evidence = null, usage = null } = made as Partial<Attempt>;
  const { threads = [], model_calls = [] } = (evidence ?? {}) as Partial<Evidence>;
  const calls = observations.records.filter((record) => record.kind === "tool_call");
  return {
    attempt,
    capture_key,
    worker,
    started_at,
    ended_at,
    charged,
    usage,
    usage_unknown: isUsageUnknown({ ...made, usage, evidence }),
    servers: serversOf(made),
    tool_calls: calls
      .toSorted((a, b) => placeInTime(a) - placeInTime(b))
      .map(({ kind: _kind, invocation_id: _id, sandbox_id: _sandbox, timing_source: _source, ...call }) => call),
    ending: endingOf(made),
    evidence: evidence === null ? null : { ...evidence, threads, model_calls },
    gaps: observations.gaps.filter(({ code }) => SERVER_STATES[code] === undefined && !TOLD_BY_ENDING.has(code)),
  };
}

function endingOf({ status, incomplete_cause, cause_class, failure }: Ending): Ending {
  return { status, incomplete_cause, cause_class, failure };
}

/** The tool servers of one attempt, and what became of each. Pure. */
export function serversOf(attempt: Attempt): ExplainedServer[] {
  const grants: { name: string; required: boolean | null }[] = [...((attempt as Partial<Attempt>).grants ?? [])];
  const told = attempt.observations.gaps.flatMap((gap): Omit<ExplainedServer, "required">[] => {
    const state = SERVER_STATES[gap.code];
    return state === undefined ? [] : [{ ...nameAndReason(gap.detail ?? ""), state }];
  });
  const failed = attempt.failure?.server_names ?? [];
  for (const name of [...told.map((one) => one.name), ...failed]) {
    if (!grants.some((grant) => grant.name === name)) grants.push({ name, required: null });
  }
  return grants.map(({ name, required }) => {
    const gap = told.find((one) => one.name === name);
    const state = gap?.state ?? (failed.includes(name) ? "unavailable" : "granted");
    return { name, required, state, detail: gap?.detail ?? null };
  });
}

/** A gap's detail is a server's name, or a JSON object with it. */
function nameAndReason(detail: string): { name: string; detail: string | null } {
  let value: unknown;
  try {
    value = JSON.parse(detail);
  } catch {
    return { name: detail, detail: null };
  }
  if (value === null || typeof value !== "object" || !("server_name" in value)) return { name: detail, detail: null };
  const { server_name, ...rest } = value as Record<string, unknown>;
  const words = Object.values(rest).filter((part) => typeof part === "string");
  return { name: String(server_name), detail: words.length === 0 ? null : words.join(", ") };
}

/** Calls of which no time is known come last. */
function placeInTime({ started_at, completed_at }: ToolCallRecord): number {
  const time = started_at ?? completed_at;
  return time === null ? Number.MAX_SAFE_INTEGER : Date.parse(time);
}
