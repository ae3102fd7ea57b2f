// SPDX-License-Identifier: Apache-2.0
import { fileURLToPath } from "node:url";
import { describe, expect, it, vi } from "vitest";
import type { CodexBinary } from "../../src/codex/binary.ts";
import type { ActivationResult } from "../../src/contract/result.ts";
import type { SandboxProvider } from "../../src/sandbox/types.ts";
import { abortWith, attemptRunner, type RunOptions } from "../support/attempt.ts";
import { suiteDir } from "../support/suite-dir.ts";
import { profileFor } from "../../src/codex/profile.ts";

const dir = suiteDir();
const FAKES = fileURLToPath(new URL("../support/fake-codex", import.meta.url));
let runs = 0;

function fake(entry: string): CodexBinary {
  return {
    version: "0.144.4",
    profile: profileFor("0.144.4"),
    key: `fake-${entry}`,
    hostDir: FAKES,
    entry,
    only: [entry],
    tools: null,
    bwrap: null,
  };
}

async function run(
  entry: string,
  more: Record<string, unknown> = {},
  options: RunOptions & { onExit?: () => void } = {},
): Promise<ActivationResult> {
  const runner = await attemptRunner(`${dir}/run-${++runs}`, fake(entry));
  if (options.onExit !== undefined) runner.ports.providers = { host: telling(runner.ports.providers["host"]!, options.onExit) };
  const { result } = await runner.outcome({ task_id: { taskset: "t", task_id: entry }, input: "hello", max_attempts: 1, ...more }, options);
  if (result === null) throw new Error("it would be retried");
  return result;
}

/** The real provider; says when the launched process is gone. */
function telling(provider: SandboxProvider, onExit: () => void): SandboxProvider {
  return {
    ...provider,
    name: provider.name,
    probe: () => provider.probe(),
    create: async (spec) => {
      const sandbox = await provider.create(spec);
      const exec = sandbox.exec.bind(sandbox);
      sandbox.exec = (argv, options) => {
        const child = exec(argv, options);
        void child.exited.then(onExit);
        return child;
      };
      return sandbox;
    },
  };
}

const startupGaps = ({ observations }: ActivationResult): (string | undefined)[] =>
  observations.gaps.filter(({ code }) => code === "agent_startup_failed").map(({ detail }) => detail);
const codes = ({ observations }: ActivationResult): string[] => observations.gaps.map(({ code }) => code);

describe.each([
  ["no thread", "dies-with-words", []],
  ["a thread without a transcript", "dies-in-thread", ["agent_artifact_unavailable"]],
  ["a thread with a transcript", "dies-in-thread-with-transcript", []],
])("a startup failure with %s", (_name, entry, artifactGaps) => {
  it("is told once, with the text of the failure, in observations that the failed attempt keeps [R20 R21 R24]", async () => {
    const result = await run(entry);
    expect(result).toMatchObject({ status: "failed", cause_class: "infrastructure", failure: { status_code: 502 } });
    expect(result.failure?.failure_reason).toContain("the disk is on fire");
    expect(startupGaps(result)).toEqual([result.failure?.failure_reason]);
    expect(result.attempts[0]?.observations).toEqual(result.observations);
    expect(codes(result).filter((code) => code.startsWith("agent_artifact"))).toEqual(artifactGaps);
    expect(result.evidence).toMatchObject({ turn_started: false, model_answered: false });
  });
});

describe("a stderr that stays open after Codex is gone", () => {
  const HOST = { sandbox: { provider: "host" } };

  it("does not hold the activation longer than the session's close time-out, and is told as far as it came [R23]", async () => {
    const started = performance.now();
    const result = await run("holds-stderr", { ...HOST, codex: { session_close_timeout_seconds: 1 } });
    expect(performance.now() - started).toBeLessThan(10_000);
    expect(startupGaps(result)).toEqual([expect.stringContaining("the disk is on fire")]);
    expect(result.artifacts.map(({ path }) => path)).toContain("stderr.log");
  });

  it("is left at a cancel: the observations stay, without the startup gap [R22]", async () => {
    const controller = new AbortController();
    const onExit = vi.fn<() => void>(() => {
      setImmediate(() => abortWith(controller, { kind: "cancelled", mark: { by: "a test", at: new Date().toISOString(), reason: "" } }));
    });
    const started = performance.now();
    const result = await run(
      "holds-stderr",
      { ...HOST, codex: { session_close_timeout_seconds: 60 } },
      { signal: controller.signal, onExit },
    );
    expect(onExit).toHaveBeenCalledOnce();
    expect(performance.now() - started).toBeLessThan(10_000);
    expect(result).toMatchObject({ status: "cancelled", failure: { failure_kind: "cancelled" } });
    expect(result.observations.records.map(({ kind }) => kind)).toEqual(["agent_invocation", "sandbox"]);
    expect(codes(result)).toContain("agent_activation_interrupted");
    expect(startupGaps(result)).toEqual([]);
  });
});

describe("silence after turn.started [A3]", () => {
  it("ends at the idle limit when there is one, with its measured time and both events", async () => {
    const result = await run("silent-turn", { codex: { timeout_seconds: 60, idle_seconds: 1 } });
    expect(result).toMatchObject({ status: "incomplete", incomplete_cause: "idle", failure: null });
    expect(result.evidence).toMatchObject({ turn_started: true, turn_completed: false });
    expect(result.evidence?.elapsed_ms).toBeGreaterThanOrEqual(1_000);
    expect(result.evidence?.elapsed_ms).toBeLessThan(30_000);
    expect(result.observations.records.find(({ kind }) => kind === "sandbox")).toMatchObject({ outcome: "timeout" });
    expect(result.artifacts.find(({ path }) => path === "events.jsonl")?.bytes).toBeGreaterThan(80);
  });

  it("ends at the wall clock otherwise, and is never called the agent's time-out", async () => {
    const result = await run("silent-turn", { codex: { timeout_seconds: 2 } });
    expect(result).toMatchObject({ status: "incomplete", incomplete_cause: "wall_clock", cause_class: "model_provider" });
    expect(result.evidence?.model_answered).not.toBe(true);
    expect(result.evidence?.elapsed_ms).toBeGreaterThanOrEqual(2_000);
  });
});
