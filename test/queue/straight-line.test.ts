// SPDX-License-Identifier: Apache-2.0
import { readdir } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { startModelServer } from "../../examples/stand-ins/model-server.ts";
import { say, step, withFault } from "../../examples/stand-ins/script.ts";
import { runActivation, type RunPorts } from "../../src/activation/run.ts";
import type { CodexBinary } from "../../src/codex/binary.ts";
import { RollcallError } from "../../src/errors.ts";
import { breakerState } from "../../src/queue/breaker.ts";
import { resumeRun } from "../../src/queue/pause.ts";
import { enqueueActivations } from "../../src/queue/enqueue.ts";
import { modelState } from "../../src/queue/model-limiter.ts";
import { runStatus } from "../../src/queue/run-status.ts";
import { deferred } from "../../src/rollout/waiting.ts";
import type { SandboxProvider } from "../../src/sandbox/types.ts";
import { attemptRunner, codexVersions } from "../support/attempt.ts";
import { suiteDir } from "../support/suite-dir.ts";
import { activationOf, completes, startRig, TEST_KEYS, type Rig } from "./rig.ts";
import { profileFor } from "../../src/codex/profile.ts";

// The queue with the real straight line behind it: sandbox, Codex or a small program in its place, store.
const WAIT = { timeout: 50_000, interval: 50 };
const FAKES = fileURLToPath(new URL("../support/fake-codex", import.meta.url));
const dir = suiteDir();
let runs = 0;
let rig: Rig;
beforeEach(async () => {
  rig = await startRig({ breaker_after: 5, breaker_base_ms: 1_000, breaker_max_ms: 2_000 });
});
afterEach(() => rig.close());

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

async function work(codex: CodexBinary, concurrency: number, overrides: Partial<RunPorts> = {}): Promise<RunPorts> {
  const runner = await attemptRunner(`${dir}/run-${++runs}`, codex, { store: rig.store, defaultProvider: "host", ...overrides });
  await rig.sentinel();
  await rig.worker((claim) => runActivation(claim, runner.ports), { concurrency });
  return runner.ports;
}

const add = (ids: readonly string[], facts: Record<string, unknown> = {}) =>
  enqueueActivations(
    rig.queues,
    ids.map((id) => activationOf(id, facts)),
    { keys: TEST_KEYS },
  );
it("an activation that names no model server goes to the worker's, never to one that nobody named [fault D1]", async () => {
  const seen: unknown[] = [];
  await rig.sentinel();
  await rig.worker(
    async (claim) => {
      seen.push(claim.activation.model);
      return completes(rig.store)(claim);
    },
    { defaultModel: { name: "small", base_url: "http://llm:8000/v1" }, concurrency: 1 },
  );
  await add(["act-a"]);
  await rig.ended("act-a");
  await add(["act-b"], { model: { name: "large", api_key: "k" } });
  await rig.ended("act-b");
  await add(["act-c"], { model: { base_url: "http://other:1/v1" } });
  await rig.ended("act-c");
  expect(seen).toEqual([
    { name: "small", base_url: "http://llm:8000/v1" },
    { name: "large", base_url: "http://llm:8000/v1", api_key: "k" },
    { base_url: "http://other:1/v1" },
  ]);
});

const numbered = (count: number): string[] => Array.from({ length: count }, (_, index) => `act-${index}`);

describe("an activation that fails", () => {
  it("gets no key of the worker for a host that the worker does not know, whoever queued it; said with what to do [fault C1]", async () => {
    await work(fake("reads-all"), 2, { keyOrigins: { OPENAI_API_KEY: ["https://llm.example"] } });
    await add(["act-a"], { model: { base_url: "https://evil.example/v1" } });
    await add(["act-b"]); // to OpenAI, which is no other than a host here
    for (const [id, origin] of [
      ["act-a", "https://evil.example"],
      ["act-b", "https://api.openai.com"],
    ] as const) {
      const { failure, attempts } = await rig.ended(id);
      expect(failure).toMatchObject({ cause_code: "key_origin_not_allowed", terminal: true, stage: "admission" });
      expect(failure?.failure_reason).toContain(origin);
      expect(failure?.failure_reason).toContain("key_origins.OPENAI_API_KEY");
      expect(attempts).toHaveLength(1);
    }
  });

  it("is tried again under a number and a capture key of its own each time; all attempts are in its result", async () => {
    await work(fake("dies-with-words"), 2);
    await add(["act-a"], { max_attempts: 3 });
    const result = await rig.ended("act-a");
    expect(result).toMatchObject({ status: "failed", capture_key: "r-act-a-a2", episode_id: { attempt: 2 } });
    expect(result.attempts.map(({ attempt, capture_key, charged }) => [attempt, capture_key, charged])).toEqual([
      [0, "r-act-a", true],
      [1, "r-act-a-a1", true],
      [2, "r-act-a-a2", true],
    ]);
    expect(result.attempts.every(({ observations }) => observations.gaps.some(({ code }) => code === "agent_startup_failed"))).toBe(true);
  });

  it("is not tried again when it would only fail again [E21]", async () => {
    await work(fake("reads-nothing"), 2, { modelKeys: {} });
    await add(["act-a", "act-b"], { max_attempts: 3 });
    for (const id of ["act-a", "act-b"]) {
      const { status, failure, attempts } = await rig.ended(id);
      expect({ status, failure, attempts: attempts.length }).toMatchObject({
        status: "failed",
        failure: { cause_code: "model_key_missing", terminal: true },
        attempts: 1,
      });
    }
  });
});

it.each([
  ["cannot be started", "fail", "no user namespaces are left"],
  ["hang when they are started", "hang", "making the sandbox took longer than 3 s (setting sandbox.create_seconds)"],
])(
  "220 tasks whose sandboxes %s cost a few attempts: the run pauses, tells why, and goes on when it works [E7]",
  async (_, how, reason) => {
    let works = false;
    const mended = deferred<undefined>();
    const { ports, stateDir } = await attemptRunner(`${dir}/host-${how}`, fake("reads-nothing"));
    const host: SandboxProvider = ports.providers["host"]!;
    const late: string[] = [];
    const broken: SandboxProvider["create"] = async (spec) => {
      if (how === "fail") throw new RollcallError("sandbox_failed", "no user namespaces are left");
      await mended.promise; // deaf to the signal, and answers at last
      late.push(spec.id);
      return host.create(spec);
    };
    const provider: SandboxProvider = { ...host, create: (spec, signal) => (works ? host.create(spec, signal) : broken(spec)) };
    await work(fake("reads-nothing"), 8, { providers: { host: provider }, createSeconds: how === "hang" ? 3 : 60 });
    await add(numbered(220), { max_attempts: 1 });
    await vi.waitFor(async () => expect((await breakerState(rig.queues, "run-1")).openings[0]?.trials).toBeGreaterThanOrEqual(1), WAIT);
    const { openings } = await breakerState(rig.queues, "run-1");
    expect(openings).toMatchObject([{ cause_code: "sandbox_failed", cause_class: "infrastructure", reason }]);
    expect(openings[0]!.untouched).toBeGreaterThan(200);
    const five = { failed: 5 }; // those that opened it; what ran beside them and what tried since was not charged
    await vi.waitFor(async () => expect((await runStatus(rig.queues, "run-1")).ended).toEqual(five), WAIT);
    works = true;
    mended.resolve(undefined);
    if (how === "hang") await resumeRun(rig.queues, "run-1"); // as somebody does who mended it
    await vi.waitFor(async () => {
      const { ended } = await runStatus(rig.queues, "run-1");
      expect(ended.completed).toBeGreaterThanOrEqual(15);
      expect(ended).toMatchObject(five);
    }, WAIT);
    const { openings: all, open } = await breakerState(rig.queues, "run-1");
    expect({ all: all.length, open }).toEqual({ all: 1, open: null });
    if (how === "fail") expect(all).toMatchObject([{ closed_at: expect.any(String) as string }]); // by its own trial
    expect(late.length > 0).toBe(how === "hang");
    const left = async (): Promise<string[]> =>
      (await readdir(`${stateDir}/sandboxes`)).filter((name) => late.includes(name.split(".")[0]!));
    await vi.waitFor(async () => expect(await left()).toEqual([]), WAIT);
  },
  240_000,
);

it("a model server that answers 429 for a while costs nobody an attempt, with the real Codex [E16]", async () => {
  let busy = 5;
  const model = await startModelServer({
    scriptFor: () => {
      const answer = step(say("Done."));
      return { steps: [busy-- > 0 ? withFault(answer, { kind: "status", status: 429, body: "busy" }) : answer] };
    },
  });
  try {
    const [packaged] = await codexVersions();
    await work(packaged!.codex, 3, { defaultProvider: "bubblewrap" });
    const ids = numbered(3);
    await add(ids, { max_attempts: 1, model: { base_url: model.captureBaseUrl, name: "m" } });
    for (const id of ids) {
      const { status, attempts } = await rig.ended(id, 0, 120_000); // real sessions, on a machine that may be busy
      expect(status).toBe("completed");
      for (const { charged, failure } of attempts.slice(0, -1)) {
        expect({ charged, failure }).toMatchObject({ charged: false, failure: { cause_code: "rate_limited" } });
      }
    }
    expect(busy).toBeLessThan(0);
    expect((await modelState(rig.queues, model.url)).limit).not.toBeNull();
  } finally {
    await model.close();
  }
}, 180_000);
