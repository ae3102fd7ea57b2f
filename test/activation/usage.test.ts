// SPDX-License-Identifier: Apache-2.0
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startModelServer, type ModelServer } from "../../examples/stand-ins/model-server.ts";
import { say, scriptLine, shell, step, withFault } from "../../examples/stand-ins/script.ts";
import { attemptRunner, codexVersions, TEST_KEY } from "../support/attempt.ts";
import { suiteDir } from "../support/suite-dir.ts";

const dir = suiteDir();
let model: ModelServer;
beforeAll(async () => {
  model = await startModelServer({ apiKey: TEST_KEY, usage: { input_tokens: 1_000, output_tokens: 60 } });
});
afterAll(() => model.close());

describe.each(await codexVersions())("what an activation took with Codex $name", ({ name, codex }) => {
  it("is known of a failed session too, and the result's is that of all its attempts", async () => {
    const runner = await attemptRunner(`${dir}/${name}`, codex);
    const fault = { kind: "status", status: 400, body: "no", attempt: 0 } as const;
    const steps = [step(shell("echo hi")), withFault(step(say("bye")), fault)];
    const raw = {
      task_id: { taskset: "t", task_id: `retried-${name.replaceAll(".", "_")}` },
      input: `Do the work.\n${scriptLine({ steps })}`,
      model: { name: "stand-in", base_url: model.captureBaseUrl },
      max_attempts: 2,
    };
    const first = await runner.outcome(raw);
    expect([first.end.kind, first.attempt.status, first.attempt.usage?.total_tokens]).toEqual(["retry", "failed", 1_060]);
    const second = await runner.outcome(raw, { attempt: 1, charged: 1 });
    const { result } = second;
    expect(result?.attempts.map(({ usage }) => usage?.total_tokens)).toEqual([1_060, 2_120]);
    expect([result?.usage?.total_tokens, result?.response?.usage?.total_tokens]).toEqual([3_180, 2_120]);
    expect(result?.usage).toMatchObject({ cached_input_tokens: 1_200, reasoning_output_tokens: 30 });
  });
});
