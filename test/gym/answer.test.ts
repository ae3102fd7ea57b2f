// SPDX-License-Identifier: Apache-2.0
import { expect, it } from "vitest";
import type { Failure } from "../../src/contract/failure.ts";
import type { Response } from "../../src/contract/response.ts";
import type { ActivationResult, Evidence } from "../../src/contract/result.ts";
import { answerOf, type ResponseObject } from "../../src/gym/answer.ts";
import { GymProblem } from "../../src/gym/problem.ts";
import { attemptOf, resultOf } from "../support/result-documents.ts";

const response: Response = {
  id: "resp_1",
  object: "response",
  created_at: 1,
  model: "m",
  status: "completed",
  error: null,
  incomplete_details: null,
  output: [],
  usage: null,
  metadata: { harness_execution: "sandbox", codex_version: "0.144.4" },
  parallel_tool_calls: true,
  tool_choice: "auto",
  tools: [],
};

function failure(facts: Partial<Failure> = {}): Failure {
  const failed = { failure_kind: "agent_run_error", cause_code: "turn_failed", server_names: [], stage: "agent" } as const;
  return { ...failed, server_names: [], failure_reason: "it broke", terminal: false, status_code: 502, ...facts };
}

function failed(facts: Partial<Failure>, turnStarted: boolean): ActivationResult {
  const evidence = { turn_started: turnStarted } as Evidence;
  return resultOf("gym-s", { status: "failed", failure: failure(facts), evidence });
}

function answer(result: ActivationResult, agentOutcome: "metadata" | "502" = "metadata"): ResponseObject | [number, string] {
  try {
    return answerOf(result, { metadata: { row: "7" }, model: "m", agentOutcome });
  } catch (error) {
    if (error instanceof GymProblem) return [error.status, error.message];
    throw error;
  }
}

it("a gradable session is its response, with the request's metadata kept", () => {
  const metadata = { row: "7", harness_execution: "sandbox", codex_version: "0.144.4" };
  expect(answer(resultOf("gym-s", { response }))).toEqual({ ...response, metadata });
  const incomplete = { ...response, status: "incomplete" as const };
  const result = resultOf("gym-s", { status: "incomplete", incomplete_cause: "wall_clock", response: incomplete });
  expect(answer(result)).toEqual({ ...incomplete, metadata });
});

it.each<[string, Partial<Failure>, boolean]>([
  ["a startup failure", {}, false],
  ["a sandbox that could not be made", { failure_kind: "transport_local_resource", status_code: 503 }, false],
  ["a worker without a model key", { failure_kind: "agent_request_failed", status_code: 422 }, false],
  ["a lost worker, however far it had come", { failure_kind: "session_lost" }, true],
  ["a stopped worker", { failure_kind: "shutdown", status_code: 503 }, true],
  ["a lost result", { failure_kind: "persistence_failed" }, true],
])("%s is a 502 with its reason [R43]", (_, facts, turnStarted) => {
  expect(answer(failed(facts, turnStarted))).toEqual([502, "Codex execution failed: it broke"]);
});

it("a failure within the turn is a response that failed, or a 502 for older callers; the same result gives the same [R44]", () => {
  const result = failed({ failure_kind: "provider_unavailable" }, true);
  const told = answer(result);
  expect(told).toMatchObject({
    id: expect.stringMatching(/^resp_[0-9a-f]{32}$/) as string,
    status: "failed",
    error: { code: "server_error", message: "it broke" },
    output: [],
    metadata: { row: "7", ng_agent_outcome: '{"failure_kind":"provider_unavailable","status_code":502}', codex_version: "0.144.4" },
  });
  expect(answer(result)).toEqual(told);
  expect(answer(result, "502")).toEqual([502, "Codex execution failed: it broke"]);
});

it("a response that failed has the usage of its last session, the result that of all", () => {
  const usage = {
    input_tokens: 500,
    output_tokens: 100,
    total_tokens: 600,
    cached_input_tokens: null,
    cache_write_input_tokens: 7,
    reasoning_output_tokens: null,
  };
  const result = failed({ failure_kind: "provider_unavailable" }, true);
  const attempts = [attemptOf(0, { usage: { ...usage, input_tokens: 1 } }), attemptOf(1, { usage })];
  expect(answer({ ...result, attempts, usage: { ...usage, total_tokens: 701 } })).toMatchObject({ status: "failed", usage });
  expect(answer({ ...result, attempts: [attemptOf(0)] })).toMatchObject({ usage: null });
});

it("one that was cancelled, with whatever it had come to, is a 409", () => {
  const cancelled = failure({ failure_kind: "cancelled", failure_reason: "cancelled by ops" });
  expect(answer(resultOf("gym-s", { status: "cancelled", failure: cancelled, response }))).toEqual([
    409,
    "the agent session was ended: cancelled by ops",
  ]);
});
