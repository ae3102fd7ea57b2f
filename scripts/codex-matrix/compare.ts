// SPDX-License-Identifier: Apache-2.0
import { OFFICE_TOOLS } from "../../examples/stand-ins/office-tool-list.ts";
import { addUsage, NO_USAGE, type ThreadCount } from "../../examples/stand-ins/request-log.ts";
import type { Usage } from "../../examples/stand-ins/script.ts";
import type { GapCode } from "../../src/contract/observation.ts";
import type { ActivationResult, Attempt } from "../../src/contract/result.ts";
import { forVersion, type ByVersion, type Kind, type Scenario } from "./scenario.ts";
import type { ServerCall } from "./servers.ts";

/** What is compared; report.ts says for each where to look. */
export const ASPECTS = [
  "end",
  "servers named",
  "tokens",
  "model calls",
  "threads",
  "response ids",
  "tool calls",
  "deliverables",
  "tools offered",
  "gaps",
] as const;
export type Aspect = (typeof ASPECTS)[number];

export interface Difference {
  aspect: Aspect | "result" | "summary";
  expected: string;
  found: string;
}

export interface Compared {
  scenario: Scenario;
  version: string;
  kind: Kind;
  result: ActivationResult;
  /** The model server's own count under a capture key. */
  threadsOf: (captureKey: string) => readonly ThreadCount[];
  /** The tool servers' own records of the session's calls. */
  calls: readonly ServerCall[];
  /** null: not looked at. */
  offer: readonly string[] | null;
}

/** Whatever a session's result says otherwise than the servers counted, or than is right for its scenario. Pure. */
export function compareSession(session: Compared): Difference[] {
  const told: Record<Aspect, [expected: string, found: string]> = {
    end: [forVersion(session.scenario.ends, session.version), verdictText(session.result)],
    "servers named": [
      [...(session.scenario.names ?? [])].sort().join(" "),
      [...(session.result.failure?.server_names ?? [])].sort().join(" "),
    ],
    ...modelTold(session),
    "tool calls": toolsTold(session),
    deliverables: deliverablesTold(session),
    "tools offered": offerTold(session),
    gaps: gapsTold(session),
  };
  return ASPECTS.filter((aspect) => told[aspect][0] !== told[aspect][1]).map((aspect) => ({
    aspect,
    expected: told[aspect][0] || "none",
    found: told[aspect][1] || "none",
  }));
}

/** e.g. "rate_limited > completed", "failed mcp_server_auth grant final". Pure. */
export function verdictText({ attempts, status, failure, incomplete_cause, cause_class }: ActivationResult): string {
  const before = attempts.slice(0, -1).map((attempt) => `${causeOf(attempt) ?? attempt.status} > `);
  const words = [status, causeOf({ failure, incomplete_cause }), cause_class, failure?.terminal === true ? "final" : null];
  return before.join("") + words.filter((word) => word !== null).join(" ");
}

function causeOf({ failure, incomplete_cause }: Pick<Attempt, "failure" | "incomplete_cause">): string | null {
  return failure?.cause_code ?? incomplete_cause;
}

/** Attempt by attempt, since each has a capture key of its own. */
function modelTold({
  scenario,
  version,
  result,
  threadsOf,
}: Compared): Record<"tokens" | "model calls" | "threads" | "response ids", [string, string]> {
  const served = result.attempts.map(({ capture_key }) => tellable(threadsOf(capture_key), version, scenario));
  const each = (tell: (attempt: Attempt, threads: readonly ThreadCount[]) => [string, string]): [string, string] => {
    const pairs = result.attempts.map((attempt, index) => tell(attempt, served[index]!));
    return [pairs.map(([expected]) => expected).join(" > "), pairs.map(([, found]) => found).join(" > ")];
  };
  const tellsWrites = forVersion(TELLS_CACHE_WRITES, version);
  const tellsIds = forVersion(TELLS_RESPONSE_IDS, version);
  return {
    tokens: each(({ usage }, threads) => {
      const sum = threads.reduce((total, one) => addUsage(total, one.usage), NO_USAGE);
      return [tokensText(tellsWrites ? sum : { ...sum, cache_write_input_tokens: 0 }), tokensText(usage ?? NO_USAGE)];
    }),
    "model calls": each(({ evidence }, threads) => {
      const compactions = evidence?.model_calls.filter(({ kind }) => kind === "compaction").length ?? 0;
      return [
        callsText(total(threads, "answered"), total(threads, "compactions")),
        callsText(evidence?.model_calls.length ?? 0, compactions),
      ];
    }),
    threads: each(({ evidence }, threads) => [
      threads
        .map(({ answered, usage }) => `${answered} calls ${usage.input_tokens + usage.output_tokens}`)
        .sort()
        .join(", "),
      (evidence?.threads ?? [])
        .filter(({ model_calls }) => model_calls > 0)
        .map(({ model_calls, tokens }) => `${model_calls} calls ${tokens.input_tokens + tokens.output_tokens}`)
        .sort()
        .join(", "),
    ]),
    "response ids": each(({ evidence }, threads) => {
      const sent = threads.flatMap(({ response_ids }) => response_ids);
      const told = (evidence?.model_calls ?? []).flatMap(({ response_id }) => (response_id === null ? [] : [response_id]));
      return [
        `${tellsIds ? sent.length : 0} sent`,
        `${told.length} sent${told.every((id) => sent.includes(id)) ? "" : ", some of them not"}`,
      ];
    }),
  };
}

/** What a version's transcripts hold. A new one is taken to hold what the newest does. */
const TELLS_CACHE_WRITES: ByVersion<boolean> = { else: true, "0.144.4": false };
const TELLS_RESPONSE_IDS: ByVersion<boolean> = { else: true, "0.144.4": false };
/** Of an answer that ended at the model's output limit. */
const TELLS_INCOMPLETE: ByVersion<boolean> = { else: true, "0.144.4": false };

/** The server's counts, as far as this Codex tells of them. Pure. */
export function tellable(threads: readonly ThreadCount[], version: string, scenario: Pick<Scenario, "last_answer">): ThreadCount[] {
  const lastIsTold = forVersion(scenario.last_answer ?? "told", version) === "told";
  const told = threads.map((thread) => (lastIsTold || thread.parent_thread_id !== null ? thread : withoutLast(thread)));
  const answered = told.filter((thread) => thread.answered > 0);
  if (!forVersion(TELLS_INCOMPLETE, version)) return answered;
  return told.map(({ incomplete, ...thread }) => ({
    ...thread,
    incomplete,
    answered: thread.answered + incomplete.answered,
    usage: addUsage(thread.usage, incomplete.usage),
    response_ids: [...thread.response_ids, ...incomplete.response_ids],
  }));
}

function withoutLast(thread: ThreadCount): ThreadCount {
  const less = Object.entries(thread.last_usage).map(([kind, tokens]) => [kind, -tokens]);
  const usage = addUsage(thread.usage, Object.fromEntries(less) as Usage);
  return { ...thread, answered: thread.answered - 1, usage, response_ids: thread.response_ids.slice(0, -1) };
}

/** Zero and unknown are the same here: Codex does not tell them apart. */
function tokensText(usage: { [kind in keyof Usage]: number | null }): string {
  const { input_tokens, cached_input_tokens, cache_write_input_tokens, output_tokens, reasoning_output_tokens } = usage;
  return `in ${input_tokens ?? 0} cached ${cached_input_tokens ?? 0} written ${cache_write_input_tokens ?? 0} out ${output_tokens ?? 0} reasoning ${reasoning_output_tokens ?? 0}`;
}

const callsText = (calls: number, compactions: number): string => `${calls}${compactions > 0 ? ` (${compactions} compactions)` : ""}`;

function total(threads: readonly ThreadCount[], field: "answered" | "compactions"): number {
  return threads.reduce((sum, one) => sum + one[field], 0);
}

/** Each tool's calls as the records have them, and those that evidence counts as successful, against the tool servers' own. */
function toolsTold({ scenario, result, calls }: Compared): [string, string] {
  const served = countByTool(calls.map(({ server, tool, outcome }) => ({ tool: `${server}.${tool}`, ok: outcome === "ok" })));
  const records = result.attempts.flatMap(({ observations }) => observations.records);
  const told = records.flatMap((record) =>
    record.kind === "tool_call" && record.server_name !== undefined
      ? [{ tool: `${record.server_name}.${record.tool_name}`, ok: record.status === "completed" }]
      : [],
  );
  const expected = { ...served, ...scenario.calls };
  const found = countByTool(told);
  const successes = (counts: Record<string, string>): string =>
    OFFICE_TOOLS.map(({ name }) => {
      const sum = Object.entries(counts).reduce(
        (all, [tool, text]) => all + (tool.endsWith(`.${name}`) ? Number.parseInt(text, 10) : 0),
        0,
      );
      return sum > 0 ? `${name} ${sum}` : "";
    })
      .filter(Boolean)
      .join(", ");
  const evidence = result.attempts.flatMap((attempt) => Object.entries(attempt.evidence?.tools_called ?? {}));
  const counted = Object.fromEntries(
    OFFICE_TOOLS.map(({ name }) => [`.${name}`, String(evidence.reduce((sum, [tool, times]) => sum + (tool === name ? times : 0), 0))]),
  );
  return [`${countsText(expected)}; successful: ${successes(expected)}`, `${countsText(found)}; successful: ${successes(counted)}`];
}

function countByTool(calls: readonly { tool: string; ok: boolean }[]): Record<string, string> {
  const tools = [...new Set(calls.map(({ tool }) => tool))];
  return Object.fromEntries(
    tools.map((tool) => {
      const made = calls.filter((call) => call.tool === tool);
      const good = made.filter(({ ok }) => ok).length;
      return [tool, `${good} ok, ${made.length - good} not`];
    }),
  );
}

function countsText(counts: Record<string, string>): string {
  const lines = Object.entries(counts).map(([tool, count]) => `${tool} ${count}`);
  return lines.sort().join("; ");
}

/** What finish named is collected wherever a tool server saw it; every script hands in the same file. */
function deliverablesTold({ result, calls }: Compared): [string, string] {
  const handedIn = calls.some(({ tool, outcome }) => tool === "finish" && outcome === "ok");
  const collected = result.artifacts.filter(({ kind }) => kind !== "evidence").map(({ source }) => source?.split("/").at(-1) ?? "");
  return [handedIn ? "report.md" : "", collected.sort().join(" ")];
}

/** Only what is too much or too little, since the lists are long. */
function offerTold({ result, threadsOf, offer }: Compared): [string, string] {
  const root = threadsOf(result.capture_key).find(({ parent_thread_id }) => parent_thread_id === null);
  if (offer === null || root === undefined) return ["", ""];
  const missing = offer.filter((name) => !root.offered.includes(name));
  const more = root.offered.filter((name) => !offer.includes(name));
  return [missing.join(" "), more.join(" ")];
}

/** Those that every session has, because the version does not tell something. */
const ALWAYS: ByVersion<readonly GapCode[]> = { else: [], "0.144.4": ["model_call_join_key_unavailable"] };
/** Where nothing ran, or no answer came, counters are zero or missing. */
const WITHOUT_ANSWER: readonly GapCode[] = [
  "subagent_hierarchy_unavailable",
  "compaction_observations_unavailable",
  "model_call_join_key_unavailable",
  "cached_token_usage_unavailable",
  "reasoning_token_usage_unavailable",
  "partial_model_usage_unavailable",
];

function gapsTold({ scenario, version, kind, result, threadsOf }: Compared): [string, string] {
  const answered = total(tellable(threadsOf(result.capture_key), version, scenario), "answered") > 0;
  const wanted = new Set([...(answered ? forVersion(ALWAYS, version) : []), ...forVersion(scenario.gaps ?? [], version)]);
  const allowed = new Set<GapCode>([...wanted, ...(scenario.may ?? []), ...(answered ? [] : WITHOUT_ANSWER)]);
  // Where not all usage is known, not all model calls are.
  if (allowed.has("partial_model_usage_unavailable")) allowed.add("model_call_join_key_unavailable");
  if (kind === "unknown") allowed.add("model_metadata_fallback");
  const codes = new Set(result.observations.gaps.map(({ code }) => code));
  return [
    [...wanted]
      .filter((code) => !codes.has(code))
      .sort()
      .join(" "),
    [...codes]
      .filter((code) => !allowed.has(code))
      .sort()
      .join(" "),
  ];
}
