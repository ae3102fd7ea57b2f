// SPDX-License-Identifier: Apache-2.0
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startModelServer, type ModelServer } from "../../examples/stand-ins/model-server.ts";
import { say, scriptLine, shell, step, type Step } from "../../examples/stand-ins/script.ts";
import { replayAttempt } from "../../src/activation/replay.ts";
import { explain } from "../../src/activation/explain.ts";
import { explanationText } from "../../src/rollout/explain-text.ts";
import type { ActivationResult } from "../../src/contract/result.ts";
import { findCgroups } from "../../src/sandbox/find-cgroups.ts";
import { attemptRunner, codexVersions, TEST_KEY, type AttemptRunner } from "../support/attempt.ts";
import { suiteDir } from "../support/suite-dir.ts";

const CGROUPS = (await findCgroups()) !== null;
const WHY = CGROUPS ? "" : " (SKIPPED: this user may make no control groups)";
const versions = await codexVersions();
const dir = suiteDir();
let model: ModelServer;

beforeAll(async () => {
  model = await startModelServer({ apiKey: TEST_KEY });
});
afterAll(() => model.close());

describe.skipIf(!CGROUPS).each(versions)(`a session that runs out of memory, Codex $name${WHY}`, ({ name, codex }) => {
  let runner: AttemptRunner;
  beforeAll(async () => {
    runner = await attemptRunner(join(dir, name), codex);
  });

  async function ended(id: string, steps: Step[], memory_mb: number): Promise<ActivationResult> {
    const { result } = await runner.outcome({
      task_id: { taskset: "t", task_id: id },
      input: `Do the work.\n${scriptLine({ steps })}`,
      model: { name: "stand-in", base_url: model.captureBaseUrl },
      sandbox: { limits: { memory_mb } },
      max_attempts: 2,
    });
    if (result === null) throw new Error(`${id} would be tried again`);
    const replay = await replayAttempt(join(runner.store, result.activation_id, "attempt-0"));
    expect(replay?.differences).toEqual([]);
    return result;
  }
  const sandboxOf = ({ observations }: ActivationResult) => observations.records.find(({ kind }) => kind === "sandbox");
  const told = (result: ActivationResult): string => explanationText(explain(result));

  it("completes when only a command of the model's was killed, and the sandbox's record tells the kill", async () => {
    const result = await ended("child", [step(shell("dd if=/dev/zero of=/dev/null bs=400M count=1; echo hog $?")), step(say("done"))], 192);
    expect(result).toMatchObject({ status: "completed", cause_class: null, failure: null });
    expect(result.evidence).toMatchObject({ exit_code: 0, oom_killed: true, memory_limit_reached: true });
    expect(sandboxOf(result)).toMatchObject({ outcome: "oom", exit_code: 0, signal: null });
    expect(JSON.stringify(result.response?.output)).toContain("hog 137");
    expect(told(result)).toContain("exit code 0; the kernel killed a process, as the sandbox reached its memory limit");
  });

  it("fails as the agent's doing, for good, when Codex itself was killed", async () => {
    // Nobody has what lies in /dev/shm, so of all processes Codex is the one with the most memory.
    const fill = "head -c 67000000 /dev/zero >/dev/shm/a; sleep 30";
    const result = await ended("codex", [step(shell(fill)), step(say("unreachable"))], 64);
    expect(result).toMatchObject({
      status: "failed",
      cause_class: "agent",
      failure: { failure_kind: "provider_oom_killed", cause_code: "out_of_memory", stage: "agent", terminal: true, status_code: 502 },
    });
    expect(result.failure?.failure_reason).toContain("the sandbox reached its memory limit");
    expect(result.evidence).toMatchObject({ signal: "SIGKILL", model_answered: true, oom_killed: true, memory_limit_reached: true });
    expect(sandboxOf(result)).toMatchObject({ outcome: "oom", exit_code: null, signal: "SIGKILL" });
    expect(told(result)).toContain("killed by SIGKILL; the kernel killed a process");
  });

  it("is never the agent's doing before the model was called: a limit too small for Codex", async () => {
    const result = await ended("tiny", [step(say("unreachable"))], 4);
    expect(result).toMatchObject({
      status: "failed",
      cause_class: "infrastructure",
      failure: { failure_kind: "provider_oom_killed", cause_code: "out_of_memory", terminal: true },
      evidence: { turn_started: false, oom_killed: true },
    });
    expect(result.observations.gaps).toContainEqual({
      code: "agent_startup_failed",
      invocation_id: result.capture_key,
      detail: result.failure?.failure_reason,
    });
  });

  it("is told apart from one that did not", async () => {
    const result = await ended("enough", [step(shell("echo fine")), step(say("done"))], 512);
    expect(result.evidence).toMatchObject({ oom_killed: false });
    expect(sandboxOf(result)).toMatchObject({ outcome: "completed", peak_memory_bytes: expect.any(Number), cpu_ms: expect.any(Number) });
    expect(told(result)).not.toContain("the kernel killed");
  });
});
