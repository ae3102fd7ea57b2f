// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import { addUsage, NO_USAGE, type ThreadCount } from "../../examples/stand-ins/request-log.ts";
import { compareSession, verdictText, type Compared } from "../../scripts/codex-matrix/compare.ts";
import { defaultModels, kindOf, type Catalogue } from "../../scripts/codex-matrix/models.ts";
import { expectedOffer } from "../../scripts/codex-matrix/offers.ts";
import { differs, markdownOf, type VersionReport } from "../../scripts/codex-matrix/report.ts";
import { sessionsOf } from "../../scripts/codex-matrix/run.ts";
import { forVersion, TOLD_WITH_OUTPUTS, work, type Scenario } from "../../scripts/codex-matrix/scenario.ts";
import { SCENARIOS } from "../../scripts/codex-matrix/scenarios/index.ts";
import { PROFILED_VERSIONS } from "../../src/codex/profile.ts";
import type { ActivationResult, Attempt } from "../../src/contract/result.ts";

// The comparison itself: what a session's result says otherwise than the servers counted must be told, and nothing else.

const scenario: Scenario = { name: "works", kinds: ["code"], script: work(), ends: "completed" };
const usage = { ...NO_USAGE, input_tokens: 100, cache_write_input_tokens: 5, output_tokens: 10 };

function thread(facts: Partial<ThreadCount> = {}): ThreadCount {
  const incomplete = { answered: 0, usage: NO_USAGE, response_ids: [] };
  return {
    thread_id: "root",
    parent_thread_id: null,
    answered: 2,
    compactions: 0,
    usage,
    last_usage: usage,
    response_ids: ["r1", "r2"],
    incomplete,
    offered: ["a"],
    ...facts,
  };
}

function call(response_id: string | null): object {
  return { thread_id: "root", response_id, at: null, kind: "turn", tokens: usage };
}

function attempt(facts: object = {}): Attempt {
  return {
    capture_key: "t1",
    status: "completed",
    incomplete_cause: null,
    failure: null,
    usage: { ...usage, total_tokens: 110, cached_input_tokens: null, reasoning_output_tokens: null },
    evidence: {
      tools_called: { finish: 1, exec_command: 3 },
      threads: [{ thread_id: "root", model_calls: 2, tokens: usage }],
      model_calls: [call("r1"), call("r2")],
    },
    observations: {
      source: "codex",
      gaps: [],
      records: [{ kind: "tool_call", tool_name: "finish", server_name: "office", status: "completed" }],
    },
    ...facts,
  } as unknown as Attempt;
}

function result(facts: object = {}, last: Attempt = attempt()): ActivationResult {
  return {
    capture_key: "t1",
    status: "completed",
    incomplete_cause: null,
    cause_class: null,
    failure: null,
    attempts: [last],
    observations: last.observations,
    artifacts: [
      { kind: "evidence", source: null },
      { kind: "submission", source: "/workspace/report.md" },
    ],
    ...facts,
  } as unknown as ActivationResult;
}

const served = {
  server: "office",
  tool: "finish",
  outcome: "ok",
  session_id: "t1",
  args: {},
  started_at: 1,
  ended_at: 2,
  thread_id: "root",
} as const;
const asItShouldBe: Compared = {
  scenario,
  version: "0.171.0",
  kind: "code",
  result: result(),
  threadsOf: (key) => (key === "t1" ? [thread()] : []),
  calls: [served],
  offer: ["a"],
};
const child = thread({ thread_id: "child", parent_thread_id: "root", answered: 1, response_ids: ["r3"] });
const gap = (code: string): Attempt => attempt({ observations: { ...attempt().observations, gaps: [{ code }] } });

test("a result that says what the servers counted has no difference", () => {
  expect(compareSession(asItShouldBe)).toEqual([]);
});

test.each<[string, Partial<Compared>, string[]]>([
  ["another end", { result: result({ cause_class: "agent" }) }, ["end"]],
  ["a server that is not named", { scenario: { ...scenario, names: ["office"] } }, ["servers named"]],
  ["a thread that is not seen", { threadsOf: () => [thread(), child] }, ["tokens", "model calls", "threads", "response ids"]],
  ["one kind of tokens", { result: result({}, attempt({ usage: { ...attempt().usage, cache_write_input_tokens: null } })) }, ["tokens"]],
  ["usage that is not known", { result: result({}, attempt({ usage: null })) }, ["tokens"]],
  ["another response id", { threadsOf: () => [thread({ response_ids: ["r1", "other"] })] }, ["response ids"]],
  ["a summary that is not told", { threadsOf: () => [thread({ compactions: 1 })] }, ["model calls"]],
  ["a call that no record tells of", { calls: [served, { ...served, tool: "web_search" }] }, ["tool calls"]],
  ["a call that succeeded for one side only", { calls: [{ ...served, outcome: "tool_error" }] }, ["tool calls", "deliverables"]],
  ["a deliverable that is not collected", { result: result({ artifacts: [] }) }, ["deliverables"]],
  ["a tool too many, and one missing", { offer: ["b"] }, ["tools offered"]],
  ["an unexpected gap", { result: result({}, gap("transcript_disagrees")) }, ["gaps"]],
  ["a missing gap", { scenario: { ...scenario, gaps: ["submission_late"] } }, ["gaps"]],
  [
    "an answer cut short, and billed",
    { threadsOf: () => [thread({ incomplete: { answered: 1, usage, response_ids: ["r3"] } })] },
    ["tokens", "model calls", "threads", "response ids"],
  ],
])("%s is told", (_name, changed, aspects) => {
  expect(compareSession({ ...asItShouldBe, ...changed }).map(({ aspect }) => aspect)).toEqual(aspects);
});

test("what a version does not tell is no difference there", () => {
  const last = attempt({
    usage: { ...attempt().usage, cache_write_input_tokens: null },
    evidence: { ...attempt().evidence, model_calls: [call(null), call(null)] },
    observations: gap("model_call_join_key_unavailable").observations,
  });
  const incomplete = { answered: 1, usage, response_ids: ["r3"] };
  const older = { ...asItShouldBe, version: "0.144.4", result: result({}, last), threadsOf: () => [thread({ incomplete })] };
  expect(compareSession(older)).toEqual([]);
  expect(compareSession({ ...older, version: "0.999.0" }).map(({ aspect }) => aspect)).toContain("response ids");
  const more = [thread({ answered: 3, usage: addUsage(usage, { ...usage, input_tokens: 5 }), last_usage: { ...usage, input_tokens: 5 } })];
  const stopped = { ...older, scenario: { ...scenario, last_answer: TOLD_WITH_OUTPUTS }, threadsOf: () => more };
  expect(compareSession(stopped)).toEqual([]);
  expect(compareSession({ ...stopped, scenario }).map(({ aspect }) => aspect)).toEqual(["tokens", "model calls", "threads"]);
});

test("an end is written with the causes of the attempts before it", () => {
  const failure = { cause_code: "stream_lost", terminal: true };
  const before = attempt({ status: "failed", failure });
  expect(verdictText(result({ attempts: [before, attempt()] }))).toBe("stream_lost > completed");
  expect(verdictText(result({ status: "failed", failure, cause_class: "model_provider" }))).toBe("failed stream_lost model_provider final");
  expect(verdictText(result({ status: "incomplete", incomplete_cause: "idle", cause_class: "limit" }))).toBe("incomplete idle limit");
});

test("a model is of the kind that Codex takes it for", () => {
  const known = (slug: string, priority: number, tool_mode: string | null, visibility = "list"): Catalogue[number] => ({
    slug,
    priority,
    visibility,
    tool_mode,
    multi_agent_version: tool_mode === null ? null : "v2",
  });
  const catalogue = [known("gpt-5", 3, null), known("gpt-5.6-sol", 2, "code_mode_only"), known("hidden", 1, "code_mode_only", "hide")];
  const names = ["openai/gpt-5.6-sol", "gpt-5.6-sol-2026-09-01", "gpt-5-pro", "a/b/gpt-5", "my-vllm-model"];
  expect(names.map((name) => kindOf(catalogue, name))).toEqual(["code", "code", "plain", "unknown", "unknown"]);
  expect(defaultModels(catalogue).map(({ name }) => name)).toEqual(["my-vllm-model", "gpt-5", "gpt-5.6-sol"]);
});

test("every scenario has a name of its own, something right for each version, and runs with each model of its kinds", () => {
  expect(new Set(SCENARIOS.map(({ name }) => name)).size).toBe(SCENARIOS.length);
  for (const { ends } of SCENARIOS)
    for (const version of [...PROFILED_VERSIONS, "0.999.0"]) expect(forVersion(ends, version)).toMatch(/^[a-z]/);
  const models = [{ name: "m", kind: "unknown" } as const, { name: "p", kind: "plain" } as const, { name: "c", kind: "code" } as const];
  const sessions = sessionsOf(SCENARIOS, models, "0.171.0");
  expect(sessions).toHaveLength(SCENARIOS.reduce((sum, { kinds }) => sum + kinds.length, 0));
  expect(new Set(sessions.map(({ id }) => id)).size).toBe(sessions.length);
  const [waiting, others] = [sessions.filter(({ scenario: { slow } }) => slow), sessions.filter(({ scenario: { slow } }) => !slow)];
  expect(sessions).toEqual([...waiting, ...others]);
});

test("the offer is that of the setting: the granted tools, agents only where they are on", () => {
  const on: Scenario = { ...scenario, codex: { subagents: "on" } };
  const [direct, agents] = [scenario, on].map((one) => expectedOffer(one, "code", "0.171.0", ["office"])!);
  expect(direct).toEqual(expect.arrayContaining(["exec", "mcp__office.finish"]));
  expect(agents!.filter((name) => !direct!.includes(name)).every((name) => name.startsWith("collaboration."))).toBe(true);
  expect(expectedOffer({ ...scenario, codex: { tools: "catalogue" } }, "code", "0.171.0", ["office"])).not.toContain("mcp__office.finish");
  expect(expectedOffer(scenario, "code", "0.171.0", [])).toBeNull();
});

test("the page shows each session once, each difference, and where to look", () => {
  const row = { scenario: "works", kind: "code" as const, differences: [] };
  const good: VersionReport = { version: "0.171.0", profiled: true, models: { code: "gpt-6.2-sol" }, seconds: 3, rows: [row], run: [] };
  expect(differs(good)).toBe(false);
  expect(markdownOf(good)).toMatch(/\| works +\| ok +\|/);
  const bad = { ...good, profiled: false, rows: [{ ...row, differences: [{ aspect: "gaps" as const, expected: "none", found: "x" }] }] };
  expect(differs(bad)).toBe(true);
  expect(markdownOf(bad)).toContain("- works (code), gaps: expected `none`, found `x`");
  expect(markdownOf(bad)).toContain("no profile");
  expect(differs({ ...good, run: [{ aspect: "summary", expected: "1", found: "2" }] })).toBe(true);
});
