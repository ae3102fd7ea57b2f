// SPDX-License-Identifier: Apache-2.0
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { modelCallGaps } from "../../src/activation/model-calls.ts";
import { transcriptGaps } from "../../src/activation/own-transcript.ts";
import { planServers } from "../../src/activation/plan.ts";
import type { CodexBinary } from "../../src/codex/binary.ts";
import { sessionGaps } from "../../src/codex/gaps.ts";
import { verdictOf } from "../../src/codex/verdict.ts";
import type { ToolGrant } from "../../src/contract/grant.ts";
import { gapCodeSchema, type GapCode } from "../../src/contract/observation.ts";
import { FAULTS, outcomeOf } from "../codex/faults.ts";
import { factsOf, joinedWith, transcripts, type Version } from "../codex/recordings.ts";
import { abortWith, attemptRunner, type RunOptions } from "../support/attempt.ts";
import { suiteDir } from "../support/suite-dir.ts";
import { profileFor } from "../../src/codex/profile.ts";

const dir = suiteDir();
const FAKES = fileURLToPath(new URL("../support/fake-codex", import.meta.url));
let runs = 0;

type Codes = Promise<GapCode[]> | GapCode[];

interface Change {
  stdout?: (stdout: string) => string;
  /** null: there is none. */
  transcript?: ((transcript: string) => string) | null;
  code?: number | null;
}

/** The gaps of a recorded session, with what is changed in it. */
async function session(
  version: Version,
  name: string,
  { stdout = (same) => same, transcript = (same) => same, code = 0 }: Change = {},
): Promise<GapCode[]> {
  const recording = transcripts(version)[name]!;
  const events = await factsOf(stdout(recording.stdout));
  const end = { code, signal: null, timedOut: false };
  const joined = await joinedWith(version, events, transcript === null ? null : transcript(recording.transcript));
  const supplied = { joinKeys: joined.joinKeysKnown, compactions: joined.compactionsKnown, threads: joined.threads.length > 0 };
  const gaps = [
    ...sessionGaps(joined.facts, verdictOf(events, end, profileFor("0.144.4")), end, "key", supplied),
    ...transcriptGaps(joined, "key", (text) => text),
    ...modelCallGaps(joined.threads, "key"),
  ];
  return gaps.map((gap) => gap.code);
}

const whole = (change?: Change): Promise<GapCode[]> => session("0.171.0", "every-kind", change);
const without = (part: string) => (text: string) =>
  text
    .split("\n")
    .filter((line) => !line.includes(part))
    .join("\n");
/** As many more as the recording's 5. */
const withModelCalls = (more: number) => (text: string) => {
  const [record] = text.split("\n").filter((line) => line.includes('"token_usage_record"'));
  return text + `${record}\n`.repeat(more);
};
const withUsage = (counters: object) => (stdout: string) =>
  stdout.replace(/"usage":\{[^}]*\}/, `"usage":${JSON.stringify({ input_tokens: 2400, output_tokens: 170, ...counters })}`);

/** The gaps of an attempt with a small real executable in Codex's place. */
async function attempt(
  entry: string,
  more: Record<string, unknown> = {},
  { version = "0.144.4", ...options }: RunOptions & { version?: string } = {},
): Promise<GapCode[]> {
  const codex: CodexBinary = {
    version,
    profile: profileFor(version, "try"),
    key: `fake-${entry}`,
    hostDir: FAKES,
    entry,
    only: [entry],
    tools: null,
    bwrap: null,
  };
  const runner = await attemptRunner(`${dir}/run-${++runs}`, codex);
  const raw = { task_id: { taskset: "t", task_id: `${entry}-${runs}` }, input: "hello", max_attempts: 1, ...more };
  const { attempt: made } = await runner.outcome(raw, options);
  return made.observations.gaps.map((gap) => gap.code);
}

function cancelledMeanwhile(): Codes {
  const controller = new AbortController();
  return attempt(
    "silent-turn",
    {},
    {
      signal: controller.signal,
      onProgress: ({ note }) => {
        if (note === "turn started")
          abortWith(controller, { kind: "cancelled", mark: { by: "a test", at: new Date().toISOString(), reason: "" } });
      },
    },
  );
}

function planned(...grants: { name: string; type?: "mcp" | "direct_http" }[]): Codes {
  const given = grants.map(({ name, type = "mcp" }) =>
    type === "direct_http"
      ? { type, name, required: false, base_url: "http://127.0.0.1:1", cookies: {}, headers: {} }
      : { type, name, required: false, connection: { transport: "streamable_http", url: "http://127.0.0.1:1/mcp", headers: {} } },
  ) as ToolGrant[];
  return planServers(given, { startupSeconds: undefined, toolSeconds: undefined }, profileFor("0.144.4")).gaps.map((gap) => gap.code);
}

const instructions = { sandbox: { files: [{ path: "AGENTS.md", content: "Be brief." }] } };
const silent = { codex: { timeout_seconds: 2 } };

/** The gaps of a fault in the table of all faults. */
async function fault(title: string): Promise<GapCode[]> {
  const found = FAULTS.find(({ fault: name }) => name === title);
  if (found === undefined) throw new Error(`no such fault: ${title}`);
  return (await outcomeOf(found, "0.171.0")).split(" ").slice(3) as GapCode[];
}

/** Each code: when it is there, and the nearest case in which it is not; "always" where it is never not there. */
const TABLE: Partial<Record<GapCode, { when: string; holds: () => Codes; else: (() => Codes) | "always" }>> = {
  model_call_join_key_unavailable: {
    when: "the transcript does not name the response of every model call",
    holds: () => session("0.144.4", "every-kind"),
    else: whole,
  },
  subagent_hierarchy_unavailable: {
    when: "there is no transcript to tell of subagents",
    holds: () => whole({ transcript: null }),
    else: whole,
  },
  compaction_observations_unavailable: { when: "there is no transcript to tell", holds: () => whole({ transcript: null }), else: whole },
  cached_token_usage_unavailable: {
    when: "the counter is zero in a turn",
    holds: () => whole({ stdout: withUsage({ cached_input_tokens: 0, reasoning_output_tokens: 1 }) }),
    else: whole,
  },
  reasoning_token_usage_unavailable: {
    when: "the counter is absent in a turn",
    holds: () => whole({ stdout: withUsage({ cached_input_tokens: 5 }) }),
    else: whole,
  },
  partial_model_usage_unavailable: {
    when: "a call was cut off, though the session recovered",
    holds: () => session("0.144.4", "cut"),
    else: () => session("0.144.4", "every-kind"),
  },
  model_metadata_fallback: {
    when: "Codex did not know the model, and the session ended well",
    holds: whole,
    else: () => whole({ stdout: without("Model metadata") }),
  },
  compaction_accuracy_advisory: {
    when: "Codex warned of it",
    holds: () => session("0.144.4", "compact"),
    else: () => session("0.144.4", "every-kind"),
  },
  worker_exit_code_unavailable: { when: "nobody knows how the process ended", holds: () => whole({ code: null }), else: whole },
  agent_activation_interrupted: {
    when: "it was cancelled",
    holds: cancelledMeanwhile,
    else: () => attempt("silent-turn", silent),
  },
  agent_transcript_unavailable: {
    when: "there were no events at all",
    holds: () => attempt("dies-with-words"),
    else: () => attempt("dies-in-thread"),
  },
  tool_start_unavailable: {
    when: "a tool item completed without having started",
    holds: () => whole({ stdout: without("item.started") }),
    else: whole,
  },
  agent_startup_failed: {
    when: "Codex ended before a turn",
    holds: () => attempt("dies-in-thread"),
    else: () => attempt("turn-failed-exit-0"),
  },
  harness_not_run: {
    when: "Codex was not launched",
    holds: () => attempt("reads-all", { model: { name: "m", api_key_env: "UNSET_KEY" } }),
    else: () => attempt("reads-all"),
  },
  agent_artifact_record_unparseable: {
    when: "a record of the transcript cannot be read",
    holds: () => whole({ transcript: (text) => text.slice(0, -20) }),
    else: whole,
  },
  tool_outcome_unavailable: {
    when: "neither events nor transcript tell how a call ended",
    holds: () => session("0.171.0", "hang"),
    else: whole,
  },
  agent_artifact_unavailable: {
    when: "a thread left no transcript",
    holds: () => attempt("dies-in-thread"),
    else: () => attempt("dies-in-thread-with-transcript"),
  },
  transcript_disagrees: {
    when: "the two tell different things",
    holds: () => whole({ transcript: (text) => text.replaceAll('"usage":{"input_tokens":1000', '"usage":{"input_tokens":1001') }),
    else: whole,
  },
  model_call_outcome_unknown: {
    when: "the session ended before a model call's tokens were told",
    holds: () => session("0.144.4", "hang"),
    else: () => session("0.171.0", "hang"),
  },
  model_calls_unlisted: {
    when: "there were more than 500 model calls",
    holds: () => whole({ transcript: withModelCalls(496) }),
    else: () => whole({ transcript: withModelCalls(495) }),
  },
  stdout_lines_unparsed: {
    when: "a line of stdout is no JSON object",
    holds: () => whole({ stdout: (text) => `Welcome\n${text}` }),
    else: () => whole({ stdout: (text) => `{"type":"novelty"}\n${text}` }),
  },
  stdout_truncated: { when: "a line was too long to keep", holds: () => attempt("noisy"), else: () => attempt("reads-all") },
  submission_late: {
    when: "a required tool was called in a session that hit a limit",
    holds: () => attempt("finishes-then-silent", { ...silent, required_tools: ["finish"] }),
    else: () => attempt("finishes-then-silent", silent),
  },
  project_instructions_ignored: {
    when: "the workdir holds instructions that this Codex does not read",
    holds: () => attempt("reads-all", instructions, { version: "0.171.0" }),
    else: () => attempt("reads-all", instructions, { version: "0.144.4" }),
  },
  mcp_session_lost: {
    when: "a limit struck while a tool server owed an answer",
    holds: () => fault("a tool server forgot the session: 400 and an error for no request"),
    else: () => fault("a required tool answers 401"),
  },
  required_tool_not_offered: {
    when: "no server offers a required tool",
    holds: () => fault("the servers do not offer a required tool"),
    else: () => fault("a required tool is offered and not called"),
  },
  required_tool_refused: {
    when: "a required tool's call was answered 401",
    holds: () => fault("a required tool answers 401"),
    else: () => fault("a required tool is offered and not called"),
  },
  model_answer_empty: {
    when: "the answer had no item and no token",
    holds: () => fault("it answers with nothing, and counts no token"),
    else: () => fault("its stream breaks off once"),
  },
  mcp_server_skipped: {
    when: "Codex cannot use an optional server's name",
    holds: () => planned({ name: "a.b" }),
    else: () => planned({ name: "a-b" }),
  },
  tool_grant_skipped: {
    when: "an optional grant is none that Codex can use",
    holds: () => planned({ name: "a", type: "direct_http" }),
    else: () => planned({ name: "a" }),
  },
  mcp_tool_names_altered: {
    when: "two names are one to Codex",
    holds: () => planned({ name: "a-b" }, { name: "a_b" }),
    else: () => planned({ name: "a-b" }, { name: "a_c" }),
  },
  codex_version_unprofiled: {
    when: "the version that ran has no profile",
    holds: () => attempt("reads-all", {}, { version: "9.9.9" }),
    else: () => attempt("reads-all", {}, { version: "0.171.0" }),
  },
};

/** Shown where the part that records them is tested. */
const ELSEWHERE: Partial<Record<GapCode, string>> = {
  mcp_server_unavailable: "optional servers",
  mcp_server_state_unknown: "optional servers",
  artifact_skipped: "collecting",
  artifact_quarantined: "collecting",
  tool_output_shortened: "large outputs",
};
/** In the enum for what is not built yet: nothing may record them. */
const RESERVED: readonly GapCode[] = ["sandbox_reaped", "egress_refused"];

describe("a gap", () => {
  const rows = Object.entries(TABLE).map(([code, row]) => ({ code: code as GapCode, ...row }));

  it.each(rows)("$code is recorded when $when", async ({ code, holds }) => {
    expect(await holds()).toContain(code);
  });

  it.each(rows.filter((row) => row.else !== "always"))("$code is not recorded otherwise", async ({ code, else: otherwise }) => {
    if (otherwise !== "always") expect(await otherwise()).not.toContain(code);
  });

  it("has a code that is shown to occur, here or with its part, unless it is reserved", () => {
    const shown = [...Object.keys(TABLE), ...Object.keys(ELSEWHERE), ...RESERVED];
    expect(shown.sort()).toEqual([...gapCodeSchema.options].sort());
  });
});
