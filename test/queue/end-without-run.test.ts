// SPDX-License-Identifier: Apache-2.0
import { expect, it } from "vitest";
import { failure, resultWithoutRun } from "../../src/queue/end-without-run.ts";
import { attemptOf } from "../support/result-documents.ts";

const DATA = {
  activation_id: "act-1",
  run_id: "run-1",
  generation: 1,
  agent_session_id: null,
  episode_id: { rollout_id: "r1", attempt: 0 },
  task_id: { taskset: "t", task_id: "1" },
  metadata: {},
  reply_to: null,
  content_digest: "",
  enqueued_at: "",
};

it("an activation that ends outside a run, cancelled or lost between two attempts, took what its attempts took", () => {
  const usage = {
    input_tokens: 500,
    output_tokens: 100,
    total_tokens: 600,
    cached_input_tokens: 50,
    cache_write_input_tokens: null,
    reasoning_output_tokens: null,
  };
  const ended = (attempts: Parameters<typeof resultWithoutRun>[1]["attempts"]) =>
    resultWithoutRun(DATA, { attempts, artifacts: [] }, failure("cancelled", "cancelled", "by me"), new Date());
  expect(ended([attemptOf(0, { usage }), attemptOf(1), attemptOf(2, { usage })]).usage).toEqual({
    ...usage,
    input_tokens: 1_000,
    output_tokens: 200,
    total_tokens: 1_200,
    cached_input_tokens: 100,
  });
  expect(ended([attemptOf(0)]).usage).toBeNull();
  expect(ended([]).usage).toBeNull();
});
