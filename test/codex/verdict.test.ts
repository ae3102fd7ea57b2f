// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { sessionGaps } from "../../src/codex/gaps.ts";
import { verdictOf, type SessionEnd, type Verdict } from "../../src/codex/verdict.ts";
import { factsOf } from "./recordings.ts";
import { profileFor } from "../../src/codex/profile.ts";

const COMPACTION =
  "Heads up: Long threads and multiple compactions can cause the model to be less accurate. Start a new thread when possible to keep threads small and targeted.";
const METADATA = "Model metadata for `m` not found. Defaulting to fallback metadata; this can degrade performance and cause issues.";
const LIMIT = "Incomplete response returned, reason: max_output_tokens";

const thread = { type: "thread.started", thread_id: "t" };
const turn = { type: "turn.started" };
const done = { type: "turn.completed", usage: { input_tokens: 1, output_tokens: 1 } };
const failed = (message: string): object => ({ type: "turn.failed", error: { message } });
const streamError = (message: string): object => ({ type: "error", message });
const warning = (message: string): object => ({ type: "item.completed", item: { id: "w", type: "error", message } });

const EXIT_0: SessionEnd = { code: 0, signal: null, timedOut: false };
const EXIT_1: SessionEnd = { code: 1, signal: null, timedOut: false };
const STOPPED: SessionEnd = { code: null, signal: "SIGKILL", timedOut: true };

async function judged(events: object[], end: SessionEnd): Promise<{ verdict: Verdict; gaps: string[] }> {
  const facts = await factsOf(events.map((event) => `${JSON.stringify(event)}\n`).join(""));
  const verdict = verdictOf(facts, end, profileFor("0.144.4"));
  return { verdict, gaps: sessionGaps(facts, verdict, end, "key").map(({ code }) => code) };
}

const fails = (error: string, cause: string, failureKind = "agent_run_error"): object => ({ kind: "failed", error, cause, failureKind });
const wallClock = { kind: "incomplete", cause: "wall_clock" };
const outputLimit = { kind: "incomplete", cause: "max_output_tokens" };

describe("verdictOf", () => {
  it.each<[string, object[], SessionEnd, object]>([
    ["a completed turn and exit 0", [thread, turn, done], EXIT_0, { kind: "completed" }],
    ["turn.failed and yet exit 0 [A6]", [thread, turn, streamError("x"), failed("x")], EXIT_0, fails("x", "turn_failed")],
    ["turn.completed and yet exit 1 [A6]", [thread, turn, done], EXIT_1, fails("Codex exited with code 1", "exit_code")],
    ["no end of the turn, exit 0", [thread, turn], EXIT_0, fails("Codex ended without turn.completed", "exit_code")],
    [
      "recovered reconnects [A7]",
      [thread, turn, streamError("Reconnecting... 1/5 (cut)"), streamError("Reconnecting... 2/5 (cut)"), done],
      EXIT_0,
      { kind: "completed" },
    ],
    ["nothing at all [R52]", [], EXIT_1, { kind: "startup_failed", error: "Codex exited with code 1 before a turn started" }],
    ["a thread without a turn [R52]", [thread, warning(METADATA)], EXIT_1, { kind: "startup_failed" }],
    [
      "the wall clock before any turn",
      [],
      STOPPED,
      { kind: "startup_failed", error: "Codex was stopped by the wall clock before a turn started" },
    ],
    ["a failure after the turn started [R11]", [thread, turn], EXIT_1, fails("Codex exited with code 1", "exit_code")],
    ["the wall clock", [thread, turn], STOPPED, wallClock],
    ["the wall clock after a stream error", [thread, turn, streamError("Reconnecting... 1/5 (x)")], STOPPED, wallClock],
    ["the wall clock after a failed turn", [thread, turn, failed("x")], STOPPED, fails("x", "turn_failed")],
    ["an unknown exit", [thread, turn, done], { ...EXIT_0, code: null }, fails("Codex's exit status is unknown", "unknown")],
    ["a cleanup that failed", [thread, turn, done], { ...EXIT_0, cleanupError: "left behind" }, fails("left behind", "unknown")],
    ["the output limit of 0.144.4", [thread, turn, failed(`stream disconnected before completion: ${LIMIT}`)], EXIT_1, outputLimit],
    ["the output limit of 0.171.0", [thread, turn, failed(LIMIT)], EXIT_1, outputLimit],
    [
      "the output limit and another error",
      [thread, turn, warning("other"), failed(LIMIT)],
      EXIT_1,
      fails(`other\n${LIMIT}`, "turn_failed"),
    ],
    ["a text that only quotes the output limit", [thread, turn, failed(`${LIMIT}!`)], EXIT_1, fails(`${LIMIT}!`, "turn_failed")],
    ["429", [thread, turn, failed("exceeded retry limit, last status: 429 Too Many Requests")], EXIT_1, { cause: "rate_limited" }],
    [
      "at capacity",
      [thread, turn, failed("Selected model is at capacity. Please try a different model.")],
      EXIT_1,
      { cause: "rate_limited" },
    ],
    ["slow down (0.171.0)", [thread, turn, failed("rate limit exceeded: Slow down")], EXIT_1, { cause: "rate_limited" }],
    [
      "a rate limit inside the stream",
      [thread, turn, failed("stream disconnected before completion: Rate limit reached for gpt in org. Please try again in 1.2s.")],
      EXIT_1,
      { cause: "rate_limited", failureKind: "provider_unavailable" },
    ],
    [
      "503 with a wait",
      [thread, turn, failed("unexpected status 503 Service Unavailable: Overloaded. Please try again in 4s., url: http://m/v1/responses")],
      EXIT_1,
      { cause: "rate_limited" },
    ],
    [
      "503 without a wait",
      [thread, turn, failed("unexpected status 503 Service Unavailable: down, url: http://m/v1/responses")],
      EXIT_1,
      { cause: "turn_failed", failureKind: "provider_unavailable" },
    ],
    ["an advisory before the turn", [thread, warning(METADATA), turn, done], EXIT_0, { kind: "completed" }],
    ["the same words after it", [thread, turn, warning(METADATA), done], EXIT_0, fails(METADATA, "turn_failed")],
    ["the compaction advisory anywhere", [thread, turn, warning(COMPACTION), done], EXIT_0, { kind: "completed" }],
    ["any other error item", [thread, turn, warning("odd"), done], EXIT_0, fails("odd", "turn_failed")],
    [
      "advisories before a failure",
      [warning(METADATA), turn, warning(COMPACTION), failed("x")],
      EXIT_1,
      fails(`${METADATA}\n${COMPACTION}\nx`, "turn_failed"),
    ],
    ["an advisory and the output limit", [warning(METADATA), turn, failed(LIMIT)], EXIT_1, outputLimit],
  ])("%s", async (_name, events, end, expected) => {
    expect((await judged(events, end)).verdict).toMatchObject(expected);
  });

  it("records recovered reconnects as unknown usage [A7]", async () => {
    const facts = await factsOf(`${JSON.stringify(streamError("Reconnecting... 1/5 (x)"))}\n`.repeat(2));
    expect(facts.reconnects).toBe(2);
    expect((await judged([turn, streamError("Reconnecting... 1/5 (x)"), done], EXIT_0)).gaps).toContain("partial_model_usage_unavailable");
    expect((await judged([turn, done], EXIT_0)).gaps).not.toContain("partial_model_usage_unavailable");
  });

  it("records excused advisories as gaps, one for each, and only when they were excused", async () => {
    const events = [warning(METADATA), turn, warning(COMPACTION), warning(COMPACTION)];
    const count = (gaps: string[]): number[] =>
      ["model_metadata_fallback", "compaction_accuracy_advisory"].map((code) => gaps.filter((gap) => gap === code).length);
    expect(count((await judged([...events, done], EXIT_0)).gaps)).toEqual([1, 2]);
    expect(count((await judged(events, STOPPED)).gaps)).toEqual([1, 2]);
    expect(count((await judged([...events, failed("x")], EXIT_1)).gaps)).toEqual([0, 0]);
  });

  it("says what is missing when there was no event, no exit, or foreign text", async () => {
    expect((await judged([], { ...EXIT_1, code: null })).gaps).toEqual(
      expect.arrayContaining(["agent_transcript_unavailable", "worker_exit_code_unavailable"]),
    );
    const facts = await factsOf("noise\nmore noise\n");
    expect(sessionGaps(facts, verdictOf(facts, EXIT_0, profileFor("0.144.4")), EXIT_0, "key")).toContainEqual({
      code: "stdout_lines_unparsed",
      invocation_id: "key",
      detail: '{"count":2}',
    });
  });
});
