// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import type { Outcome } from "../../src/activation/classify.ts";
import { isBackOff, signOf } from "../../src/activation/sign.ts";

const failed = (cause_class: Outcome["cause_class"], cause_code: string): Outcome => ({
  status: "failed",
  incomplete_cause: null,
  cause_class,
  failure: {
    failure_kind: "agent_run_error",
    cause_code,
    server_names: [],
    stage: "agent",
    failure_reason: "why",
    terminal: false,
    status_code: 502,
  },
});
const ended = (facts: Partial<Outcome>): Outcome => ({
  status: "completed",
  failure: null,
  incomplete_cause: null,
  cause_class: null,
  ...facts,
});

describe("what an attempt's end tells a run's breaker", () => {
  it.each<[string, Outcome, string]>([
    ["a completed session", ended({}), "good"],
    ["one that handed nothing in", ended({ cause_class: "agent" }), "good"],
    ["a limit", ended({ status: "incomplete", incomplete_cause: "wall_clock", cause_class: "limit" }), "good"],
    ["a turn that the agent broke", failed("agent", "turn_failed"), "good"],
    ["a sandbox that could not be made", failed("infrastructure", "sandbox_failed"), "bad"],
    ["a model server that fails", failed("model_provider", "turn_failed"), "bad"],
    ["a model never heard", ended({ status: "incomplete", incomplete_cause: "wall_clock", cause_class: "model_provider" }), "bad"],
    ["an empty answer", ended({ cause_class: "model_provider" }), "bad"],
    ["a broken grant", ended({ cause_class: "grant" }), "none"],
    ["a model server that asks to wait", failed("model_provider", "rate_limited"), "none"],
    ["a task's own grant", failed("grant", "mcp_server_unreachable"), "none"],
    ["a cancel", ended({ status: "cancelled", cause_class: "cancelled" }), "none"],
  ])("%s", (_what, outcome, kind) => {
    expect(signOf(outcome, null).kind).toBe(kind);
  });

  it("holds what makes failures alike", () => {
    const sign = signOf(failed("model_provider", "stream_lost"), true);
    expect(sign).toEqual({
      kind: "bad",
      cause: { cause_class: "model_provider", failure_kind: "agent_run_error", cause_code: "stream_lost", answered: true, reason: "why" },
    });
    const silent = signOf(ended({ status: "incomplete", incomplete_cause: "idle", cause_class: "model_provider" }), null);
    expect(silent).toMatchObject({
      cause: { failure_kind: null, cause_code: "idle", answered: false, reason: "the model never answered" },
    });
  });

  it("says what was wrong with an answer that held nothing", () => {
    expect(signOf(ended({ cause_class: "model_provider" }), true)).toMatchObject({
      cause: { cause_code: "model_answer_empty", reason: "the model's answer was empty" },
    });
  });

  it("a wait is nobody's failure", () => {
    expect([isBackOff(failed("model_provider", "rate_limited")), isBackOff(ended({}))]).toEqual([true, false]);
  });
});
