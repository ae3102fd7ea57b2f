// SPDX-License-Identifier: Apache-2.0
import { spawn, type ChildProcess } from "node:child_process";
import { createInterface } from "node:readline";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { Claim } from "../../src/activation/ports.ts";
import { parseSecretKeys } from "../../src/activation/secret-keys.ts";
import { enqueueActivations } from "../../src/queue/enqueue.ts";
import { runStatus } from "../../src/queue/run-status.ts";
import { liveWorkers } from "../../src/queue/worker-lease.ts";
import { attemptOf } from "../support/result-documents.ts";
import type { StopReason } from "../../src/activation/ports.ts";
import {
  activationOf,
  completedOf,
  completes,
  runsUntilStopped,
  startRig,
  stopReason,
  TEST_KEYS,
  SHORT_CLAIMS,
  type Rig,
  type Run,
} from "./rig.ts";

const WAIT = { timeout: 40_000, interval: 50 };
let rig: Rig;
let child: ChildProcess | undefined;
beforeEach(async () => {
  rig = await startRig(SHORT_CLAIMS);
});
afterEach(async () => {
  child?.kill("SIGKILL");
  await rig.close();
});

const add = (facts = {}, id = "act-a") => enqueueActivations(rig.queues, [activationOf(id, facts)], { keys: TEST_KEYS });

async function childWorker(): Promise<{ process: ChildProcess; firstLine: Promise<string> }> {
  const { path } = rig.redis.target as { path: string };
  child = spawn(process.execPath, ["test/support/queue-worker.mjs", path, rig.storeRoot, JSON.stringify(SHORT_CLAIMS)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const lines = createInterface({ input: child.stdout! });
  const firstLine = new Promise<string>((resolve, reject) => {
    lines.once("line", resolve);
    lines.once("close", () => reject(new Error("the worker process ended before it ran anything")));
  });
  return { process: child, firstLine };
}

it("runs the activation of a worker killed with kill -9 again, under another attempt number, charged once", async () => {
  await add();
  const killed = await childWorker();
  expect(await killed.firstLine).toBe("act-a 0");
  killed.process.kill("SIGKILL");
  await rig.sentinel();
  const taken: unknown[] = [];
  await rig.worker(async (claim) => {
    const { activation, generation, ledger } = claim;
    const numbers = await ledger.takeAttempt();
    taken.push(numbers);
    return { kind: "ended", ...(await rig.store.commit(completedOf(activation, generation, numbers.attempt))) };
  });
  expect((await rig.ended("act-a")).episode_id.attempt).toBe(1);
  expect(taken).toEqual([{ attempt: 1, charged: 1 }]);
});

it("ends an activation as session_lost when lost workers used up its attempts, without running it again", async () => {
  await add({ max_attempts: 1 });
  const killed = await childWorker();
  await killed.firstLine;
  killed.process.kill("SIGKILL");
  await rig.sentinel();
  await rig.worker(() => Promise.reject(new Error("must not run")));
  expect(await rig.ended("act-a")).toMatchObject({
    status: "failed",
    failure: { failure_kind: "session_lost", cause_code: "session_lost" },
  });
});

it("goes on from the seeded attempt and retries what is charged until its attempts are used up", async () => {
  const taken: unknown[] = [];
  await rig.sentinel();
  await rig.worker(async ({ ledger }) => {
    const numbers = await ledger.takeAttempt();
    taken.push(numbers);
    return { kind: "retry", attempt: attemptOf(numbers.attempt) };
  });
  await add({ max_attempts: 3, episode_id: { rollout_id: "r", attempt: 4 } });
  expect((await rig.ended("act-a")).status).toBe("failed");
  expect(taken).toEqual([
    { attempt: 4, charged: 0 },
    { attempt: 5, charged: 1 },
    { attempt: 6, charged: 2 },
  ]);
});

it("aborts a run at once when its claim is lost, and lets another worker have it", async () => {
  const claims: { attempt: number; reason: string }[] = [];
  await rig.sentinel();
  await rig.worker(async (claim: Claim) => {
    const { attempt } = await claim.ledger.takeAttempt();
    if (attempt > 0) return { kind: "ended", ...(await rig.store.commit(completedOf(claim.activation, 0, attempt))) };
    await rig.queues.redis.del("{rollcall}:activations:act-a:lock"); // somebody else may have it by now
    const reason = await stopReason(claim.signal);
    claims.push({ attempt, reason: reason.kind });
    return { kind: "handed_back", reason: reason.kind };
  });
  await add();
  expect((await rig.ended("act-a")).episode_id.attempt).toBe(1);
  expect(claims).toEqual([{ attempt: 0, reason: "lock_lost" }]);
});

it("stops an attempt at once when the worker that had stood still commits the one before", async () => {
  const stopped: unknown[] = [];
  let [began, goOn] = [(): void => undefined, (): void => undefined];
  const [secondBegan, firstGoesOn] = [new Promise<void>((resolve) => (began = resolve)), new Promise<void>((resolve) => (goOn = resolve))];
  await rig.sentinel();
  const run: Run = async ({ activation, ledger, signal }) => {
    const { attempt } = await ledger.takeAttempt();
    if (attempt === 0) {
      await rig.queues.redis.del("{rollcall}:activations:act-a:lock");
      await secondBegan;
      const end = await rig.store.commit(completedOf(activation, 0, attempt));
      ledger.committed();
      await firstGoesOn;
      return { kind: "ended", ...end };
    }
    began();
    stopped.push({ attempt, reason: (await stopReason(signal)).kind });
    goOn();
    return { kind: "ended", result: (await rig.store.readCommit(activation.activation_id))! };
  };
  await rig.worker(run);
  await rig.worker(run);
  await add();
  expect(await rig.ended("act-a")).toMatchObject({ status: "completed", episode_id: { attempt: 0 } });
  expect(stopped).toEqual([{ attempt: 1, reason: "lock_lost" }]);
});

it("begins no attempt under a claim that was lost meanwhile, and counts nothing for it", async () => {
  const seen: unknown[] = [];
  await rig.sentinel();
  await rig.worker(async ({ activation, ledger }) => {
    // As after a freeze between the claim and here: the lock is another's, which then dies.
    if (seen.length === 0) await rig.queues.redis.set("{rollcall}:activations:act-a:lock", "another-claim", "PX", 1_000);
    const taken = await ledger.takeAttempt().catch((error: unknown) => {
      seen.push(error);
      throw error;
    });
    seen.push(taken);
    return { kind: "ended", ...(await rig.store.commit(completedOf(activation, 0, taken.attempt))) };
  });
  await add();
  await rig.ended("act-a");
  expect(seen).toEqual([expect.objectContaining({ code: "claim_lost" }), { attempt: 0, charged: 0 }]);
});

it("gives a claim that asks again, because the answer was lost, the attempt that it has", async () => {
  const taken: unknown[] = [];
  await rig.sentinel();
  await rig.worker(async ({ activation, ledger }) => {
    taken.push(await ledger.takeAttempt(), await ledger.takeAttempt());
    return { kind: "ended", ...(await rig.store.commit(completedOf(activation, 0, 0))) };
  });
  await add();
  await rig.ended("act-a");
  expect(taken).toEqual([
    { attempt: 0, charged: 0 },
    { attempt: 0, charged: 0 },
  ]);
});

it("hands back uncharged what runs when a worker closes, at the front, and takes nothing new [D4]", async () => {
  let started = 0;
  const worker = await rig.worker(
    runsUntilStopped(() => {
      started += 1;
    }),
    { concurrency: 1 },
  );
  await add();
  await vi.waitFor(() => expect(started).toBe(1), WAIT);
  await add({}, "act-b");
  await worker.close({ graceMs: 10_000 });
  expect(started).toBe(1);
  expect(await runStatus(rig.queues, "run-1")).toMatchObject({ waiting: 2, running: 0, delayed: 0 });
  expect(await liveWorkers(rig.queues)).toEqual([]);

  const taken: unknown[] = [];
  await rig.sentinel();
  await rig.worker(
    async (claim) => {
      const { activation, ledger } = claim;
      const numbers = await ledger.takeAttempt();
      taken.push([activation.activation_id, numbers]);
      return { kind: "ended", ...(await rig.store.commit(completedOf(activation, 0, numbers.attempt))) };
    },
    { concurrency: 1 },
  );
  await rig.ended("act-b");
  expect(taken).toEqual([
    ["act-a", { attempt: 1, charged: 0 }],
    ["act-b", { attempt: 0, charged: 0 }],
  ]);
});

it("lets what runs end when a worker is drained, and takes nothing new [D4]", async () => {
  let proceed = (): void => undefined;
  const mayEnd = new Promise<void>((resolve) => (proceed = resolve));
  const started: string[] = [];
  const worker = await rig.worker(
    async (claim) => {
      started.push(claim.activation.activation_id);
      const stopped = await Promise.race([mayEnd, stopReason(claim.signal)]);
      return stopped === undefined ? completes(rig.store)(claim) : { kind: "handed_back", reason: stopped.kind };
    },
    { concurrency: 1 },
  );
  await rig.sentinel();
  await add();
  await vi.waitFor(() => expect(started).toEqual(["act-a"]), WAIT);
  const closed = worker.close({ graceMs: 10_000, drain: { ms: 60_000, afterwards: "hand_back" } });
  await add({}, "act-b");
  await vi.waitFor(async () => expect(await runStatus(rig.queues, "run-1")).toMatchObject({ waiting: 1, running: 1 }), WAIT);
  proceed();
  expect(await rig.ended("act-a")).toMatchObject({ status: "completed", episode_id: { attempt: 0 } });
  await closed;
  expect(started).toEqual(["act-a"]);
  expect(await runStatus(rig.queues, "run-1")).toMatchObject({ waiting: 1, running: 0 });
});

it.each(["hand_back", "cancel"] as const)("a session that outlasts the drain: %s [D4]", async (then) => {
  let reason: StopReason | null = null;
  const worker = await rig.worker(async (claim) => {
    await claim.ledger.takeAttempt();
    reason = await stopReason(claim.signal);
    return { kind: "handed_back", reason: reason.kind };
  });
  await rig.sentinel();
  await add();
  await vi.waitFor(async () => expect(await runStatus(rig.queues, "run-1")).toMatchObject({ running: 1 }), WAIT);
  await worker.close({ graceMs: 10_000, drain: { ms: 100, afterwards: then } });
  if (then === "hand_back") {
    expect(reason).toEqual({ kind: "shutdown" });
    expect(await runStatus(rig.queues, "run-1")).toMatchObject({ waiting: 1, running: 0 });
  } else {
    expect(reason).toMatchObject({ kind: "cancelled", mark: { reason: "its worker was stopped" } });
    expect((await rig.ended("act-a")).status).toBe("cancelled");
  }
});

it("a worker with too little room takes nothing, says why, ends what runs, and goes on when there is room again", async () => {
  let proceed = (): void => undefined;
  const mayEnd = new Promise<void>((resolve) => (proceed = resolve));
  const started: string[] = [];
  const worker = await rig.worker(async (claim) => {
    started.push(claim.activation.activation_id);
    await mayEnd;
    return completes(rig.store)(claim);
  });
  await rig.sentinel();
  await add();
  await vi.waitFor(() => expect(started).toEqual(["act-a"]), WAIT);
  worker.holdBack("disk: 1 MB left");
  await vi.waitFor(async () => expect((await liveWorkers(rig.queues))[0]?.held_back).toBe("disk: 1 MB left"), WAIT);
  await add({}, "act-b");
  proceed();
  await rig.ended("act-a");
  await vi.waitFor(async () => expect(await runStatus(rig.queues, "run-1")).toMatchObject({ waiting: 1, running: 0 }), WAIT);
  expect(started).toEqual(["act-a"]);
  worker.holdBack(null);
  await rig.ended("act-b");
  expect((await liveWorkers(rig.queues))[0]?.held_back).toBe(null);
});

it("a second close ends a drain at once [D4]", async () => {
  const reasons: string[] = [];
  const worker = await rig.worker(async (claim) => {
    const reason = await stopReason(claim.signal);
    reasons.push(reason.kind);
    return { kind: "handed_back", reason: reason.kind };
  });
  await add();
  await vi.waitFor(async () => expect(await runStatus(rig.queues, "run-1")).toMatchObject({ running: 1 }), WAIT);
  const drained = worker.close({ graceMs: 10_000, drain: { ms: 600_000, afterwards: "hand_back" } });
  await worker.close({ graceMs: 10_000 });
  await drained;
  expect(reasons).toEqual(["shutdown"]);
});

it("closes within its grace even when a run does not stop, which another worker then takes over", async () => {
  let started = false;
  const worker = await rig.worker(() => {
    started = true;
    return new Promise(() => undefined);
  });
  await add();
  await vi.waitFor(() => expect(started).toBe(true), WAIT);
  const begun = performance.now();
  await worker.close({ graceMs: 200 });
  expect(performance.now() - begun).toBeLessThan(5_000);
  await rig.sentinel();
  await rig.worker(completes(rig.store));
  expect((await rig.ended("act-a")).status).toBe("completed");
});

it("loses nothing when Redis is away for five seconds in mid-run", async () => {
  await rig.close();
  rig = await startRig({ lock_duration_ms: 20_000, lock_renew_ms: 1_000 });
  const ids = ["act-a", "act-b", "act-c"];
  const runs: string[] = [];
  let back = (): void => undefined;
  const redisIsBack = new Promise<void>((resolve) => (back = resolve));
  await rig.sentinel();
  await rig.worker(
    async (claim) => {
      runs.push(claim.activation.activation_id);
      if (runs.length === 2) await redisIsBack;
      return completes(rig.store)(claim);
    },
    { concurrency: 2 },
  );
  await enqueueActivations(
    rig.queues,
    ids.map((id) => activationOf(id, { reply_to: "results" })),
    { keys: TEST_KEYS },
  );
  await vi.waitFor(() => expect(runs.length).toBeGreaterThanOrEqual(2), WAIT);
  await rig.redis.kill9();
  const away = performance.now();
  await vi.waitFor(() => expect(performance.now() - away).toBeGreaterThan(5_000), { timeout: 10_000 });
  back(); // it ends while Redis is away
  await rig.redis.restart();
  for (const id of ids) expect(await rig.ended(id)).toMatchObject({ status: "completed", episode_id: { attempt: 0 } });
  expect(runs.sort()).toEqual(ids);
  expect(await rig.queues.results("results").getJobCounts("waiting")).toEqual({ waiting: 3 });
});

it("does not run again what was committed by a worker that died before it could say so", async () => {
  let runs = 0;
  await rig.store.commit(completedOf(activationOf("act-a"), 0, 0));
  await add();
  await rig.sentinel();
  await rig.worker((claim) => {
    runs += 1;
    return completes(rig.store)(claim);
  });
  expect((await rig.ended("act-a")).status).toBe("completed");
  expect(runs).toBe(0);
});

it("finds a lost claim also where no activation worker lives", async () => {
  await add();
  const killed = await childWorker();
  await killed.firstLine;
  killed.process.kill("SIGKILL");
  await rig.sentinel();
  await vi.waitFor(async () => expect(await rig.queues.activations.getJobState("act-a")).toBe("waiting"), WAIT);
});

it("offers a faulty run again a few times, then ends it as failed without showing what foreign errors say", async () => {
  await rig.close();
  rig = await startRig({ lock_duration_ms: 30_000 }); // a claim that a busy machine loses is no fault, and is run once more
  let runs = 0;
  await rig.sentinel();
  await rig.worker(async ({ ledger }) => {
    runs += 1;
    await ledger.takeAttempt();
    throw new Error("token-in-a-foreign-message");
  });
  await add();
  const result = await rig.ended("act-a");
  expect(runs).toBe(3);
  expect(result).toMatchObject({ status: "failed", failure: { cause_code: "unknown", terminal: true } });
  expect(JSON.stringify(result)).not.toContain("token-in");
});

it("leaves a job sealed with another key to a worker that has it, and fails it when none has it for long", async () => {
  await rig.close();
  rig = await startRig({ no_capable_worker_ms: 1_000 });
  const secret = (id: string) => activationOf(id, { model: { api_key: "sk-1" } });
  const otherKeys = parseSecretKeys(Buffer.alloc(32, 1).toString("base64"));
  await rig.sentinel();
  await rig.worker(() => Promise.reject(new Error("must not run")), { keys: otherKeys });
  const able = await rig.worker(completes(rig.store), { concurrency: 1 });
  await enqueueActivations(rig.queues, [secret("act-a")], { keys: TEST_KEYS });
  expect((await rig.ended("act-a")).status).toBe("completed");
  await able.close({ graceMs: 5_000 });
  await enqueueActivations(rig.queues, [secret("act-b")], { keys: TEST_KEYS });
  const failed = await rig.ended("act-b");
  expect(failed.failure).toMatchObject({ cause_code: "secret_key_missing" });
  expect(failed.failure!.failure_reason).toContain(TEST_KEYS[0].id);
  expect(failed.attempts).toEqual([]);
});

it("leaves alone what it does not understand or has not got, and says so when nobody has it", async () => {
  await rig.close();
  rig = await startRig({ no_capable_worker_ms: 1_000 });
  await rig.sentinel();
  await rig.worker(() => Promise.reject(new Error("must not run")));
  await add({ schema_minor: 7 }, "act-newer");
  await add({ sandbox: { provider: "moon" } }, "act-moon");
  await add({ codex: { version: "9.9.9" } }, "act-codex");
  expect((await rig.ended("act-newer")).failure!.failure_reason).toContain("schema_minor 7");
  expect((await rig.ended("act-moon")).failure).toMatchObject({ cause_code: "sandbox_failed" });
  expect((await rig.ended("act-codex")).failure).toMatchObject({ cause_code: "codex_version_mismatch" });
});

it("closes within its bounds while Redis is away", async () => {
  const sentinel = await rig.sentinel();
  let started = false;
  const worker = await rig.worker(runsUntilStopped(() => (started = true)));
  await add();
  await vi.waitFor(() => expect(started).toBe(true), WAIT);
  await rig.redis.kill9();
  const begun = performance.now();
  await worker.close({ graceMs: 500 });
  await sentinel.close({ graceMs: 500 });
  await rig.queues.close();
  expect(performance.now() - begun).toBeLessThan(10_000);
});

it("refuses to start beside a worker that keeps its artifacts elsewhere", async () => {
  await rig.worker(completes(rig.store), { facts: { store_id: "store-elsewhere" } });
  await expect(rig.worker(completes(rig.store))).rejects.toMatchObject({ code: "store_mismatch" });
  await expect(rig.sentinel()).rejects.toMatchObject({ code: "store_mismatch" });
});
