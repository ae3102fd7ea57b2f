// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { classify, sessionEnd, type ClassifyInput } from "../../src/activation/classify.ts";
import type { Stopped } from "../../src/activation/run-codex.ts";
import { Session, type SessionFacts } from "../../src/codex/session.ts";
import { verdictOf } from "../../src/codex/verdict.ts";
import type { SandboxExit } from "../../src/sandbox/types.ts";

interface Seen {
  facts?: Partial<SessionFacts>;
  exit?: SandboxExit;
  stopped?: Stopped;
  commandRunning?: boolean;
  missing?: string[];
  stderr?: string;
}

/** What a session comes to of which this was seen. */
function end({ facts: some = {}, exit = exited(0), stopped = null, commandRunning = false, missing = [], stderr = "" }: Seen): string {
  const facts: SessionFacts = { ...new Session("key").facts(), turnStarted: true, ...some };
  const verdict = verdictOf(facts, sessionEnd(exit, stopped));
  const input: ClassifyInput = {
    exit,
    stopped,
    facts,
    commandRunning,
    requiredToolsMissing: missing,
    verdict,
    errorText: "error" in verdict ? verdict.error : "",
    stderr,
    stderrTail: stderr,
    grantedServers: ["office"],
  };
  const { status, failure, incomplete_cause, cause_class } = classify(input);
  const retry = failure === null ? "" : failure.terminal ? " terminal" : " retryable";
  return `${status} ${failure?.cause_code ?? incomplete_cause ?? "-"} ${cause_class ?? "-"}${retry}`;
}

const exited = (code: number): SandboxExit => ({ started: true, code, signal: null });
const killed: SandboxExit = { started: true, code: null, signal: "SIGKILL" };
const stoppedByUs: SandboxExit = { started: true, code: null, signal: "SIGTERM" };
const answered: Partial<SessionFacts> = { modelAnswered: true };
const failedTurn = (text: string, more: Partial<SessionFacts> = {}): Partial<SessionFacts> => ({
  turnFailures: [text],
  errors: [text],
  ...more,
});

describe("whose doing an end is, from what was measured", () => {
  it.each<[string, Seen, string]>([
    ["a good end", { facts: { turnCompleted: true, ...answered } }, "completed - -"],
    ["a good end without the required tool", { facts: { turnCompleted: true, ...answered }, missing: ["finish"] }, "completed - agent"],
    [
      "the wall clock after answers",
      { facts: answered, exit: stoppedByUs, stopped: { kind: "wall_clock" } },
      "incomplete wall_clock limit",
    ],
    ["the idle limit after answers", { facts: answered, exit: stoppedByUs, stopped: { kind: "idle" } }, "incomplete idle limit"],
    [
      "the wall clock, the model never heard",
      { facts: { modelAnswered: false }, exit: stoppedByUs, stopped: { kind: "wall_clock" } },
      "incomplete wall_clock model_provider",
    ],
    [
      "the wall clock before any event",
      { facts: { turnStarted: false, modelAnswered: false }, exit: stoppedByUs, stopped: { kind: "wall_clock" } },
      "failed unknown infrastructure retryable",
    ],
    [
      "no event, exit 1",
      { facts: { turnStarted: false, modelAnswered: false }, exit: exited(1) },
      "failed unknown infrastructure retryable",
    ],
    ["a kill while a command ran", { facts: answered, exit: killed, commandRunning: true }, "failed killed_by_signal agent terminal"],
    ["a kill while the model was thinking", { facts: answered, exit: killed }, "failed killed_by_signal infrastructure retryable"],
    ["a kill before any answer", { facts: { modelAnswered: null }, exit: killed }, "failed killed_by_signal infrastructure retryable"],
    [
      "a turn that failed before any answer",
      { facts: failedTurn('{"error":{"message":"no such thing"}}', { modelAnswered: null }), exit: exited(1) },
      "failed turn_failed model_provider retryable",
    ],
    [
      "a turn that failed for a full context",
      { facts: failedTurn("Codex ran out of room in the model's context window.", answered), exit: exited(1) },
      "failed turn_failed agent retryable",
    ],
    [
      "a model server that is busy",
      { facts: failedTurn("exceeded retry limit, last status: 429 Too Many Requests", answered), exit: exited(1) },
      "failed rate_limited model_provider retryable",
    ],
    [
      "a missing key",
      { facts: failedTurn("Missing environment variable: `OPENAI_API_KEY`.", { modelAnswered: false }), exit: exited(1) },
      "failed model_key_missing infrastructure retryable",
    ],
    [
      "an exit without a word before any answer",
      { facts: { modelAnswered: null }, exit: exited(1) },
      "failed exit_code infrastructure retryable",
    ],
    [
      "a sandbox that did not begin",
      { exit: { started: false, detail: "no namespaces" } },
      "failed sandbox_failed infrastructure retryable",
    ],
    [
      "a cancel",
      { stopped: { kind: "cancelled", mark: { by: "x", at: "2027-01-15T08:00:00.000Z", reason: "" } }, exit: stoppedByUs },
      "cancelled cancelled cancelled terminal",
    ],
  ])("%s", (_name, seen, expected) => {
    expect(end(seen)).toBe(expected);
  });
});
