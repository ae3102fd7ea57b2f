// SPDX-License-Identifier: Apache-2.0
import { Worker } from "bullmq";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { CancelMark } from "../../src/activation/ports.ts";
import { answerTo, type ControlAction } from "../../src/queue/answers.ts";
import { untilNone } from "../../src/queue/await-ends.ts";
import { cancelActivation, cancelRun } from "../../src/queue/cancel.ts";
import { enqueueActivations } from "../../src/queue/enqueue.ts";
import { ACTIVATION_STATES, findActivations, stateOf } from "../../src/queue/find-activation.ts";
import { ACTIVATIONS, PREFIX } from "../../src/queue/names.ts";
import { pauseRun, readPause, resumeRun } from "../../src/queue/pause.ts";
import { retryActivations, retryRun, type RetryAnswer } from "../../src/queue/retry.ts";
import { isKnownRun, runStatus } from "../../src/queue/run-status.ts";
import { redisOptions } from "../../src/redis/connect.ts";
import { attemptOf } from "../support/result-documents.ts";
import { activationOf, completedOf, completes, runsUntilStopped, startRig, TEST_KEYS, type Rig } from "./rig.ts";

const WAIT = { timeout: 30_000, interval: 50 };
const mark: CancelMark = { by: "anna", at: "2026-11-29T16:00:00.000Z", reason: "not needed" };
let rig: Rig;
beforeEach(async () => {
  rig = await startRig();
});
afterEach(() => rig.close());

const enqueue = (ids: readonly string[], facts: Record<string, unknown> = {}) =>
  enqueueActivations(
    rig.queues,
    ids.map((id) => activationOf(id, facts)),
    { keys: TEST_KEYS },
  );
const idsOf = (count: number): string[] => Array.from({ length: count }, (_, index) => `act-${index}`);

describe("the state of an activation", () => {
  it("follows from its job, its parent, its attempt and what its worker told last", () => {
    const base = { known: true, ended: false, job: "active", parked: false, attempt: 2, stage: null } as const;
    expect(stateOf({ ...base, known: false })).toBe("unknown");
    expect(stateOf({ ...base, ended: true })).toBe("ended");
    expect(stateOf({ ...base, job: "prioritized" })).toBe("waiting");
    expect(stateOf({ ...base, job: "delayed" })).toBe("delayed");
    expect(stateOf({ ...base, job: "delayed", parked: true })).toBe("parked");
    expect(stateOf({ ...base, attempt: null })).toBe("starting");
    expect(stateOf({ ...base, stage: "starting" })).toBe("starting");
    expect(stateOf(base)).toBe("running");
    expect(stateOf({ ...base, stage: "running" })).toBe("running");
    expect(stateOf({ ...base, stage: "collecting" })).toBe("committing");
    expect(stateOf({ ...base, job: "completed" })).toBe("committing");
  });

  it("has an answer for every request", () => {
    const answers = (["cancel", "retry", "pause", "resume", "status"] satisfies ControlAction[]).flatMap((action) =>
      ACTIVATION_STATES.map((state) => answerTo(action, state)),
    );
    expect(answers.every(({ text }) => text !== "")).toBe(true);
    expect(answers.filter(({ outcome }) => outcome === "asked")).toHaveLength(3);
  });

  it("tells of one that runs who has it, and of one that ended how", async () => {
    await rig.sentinel();
    let release = (): void => undefined;
    const held = new Promise<void>((resolve) => (release = resolve));
    const worker = await rig.worker(async (claim) => {
      await held;
      return completes(rig.store)(claim);
    });
    await enqueue(["act-a"]);
    await vi.waitFor(async () => expect(await findActivations(rig.queues, ["act-a"])).toMatchObject([{ state: "starting" }]), WAIT);
    const [found] = await findActivations(rig.queues, ["act-a", "act-nobody"]);
    expect(found).toMatchObject({ run_id: "run-1", generation: 0, worker_id: expect.stringMatching(/^w-/) as string, status: null });
    release();
    await rig.ended("act-a");
    const ended = await findActivations(rig.queues, ["act-nobody", "act-a"]);
    expect(ended).toMatchObject([
      { activation_id: "act-nobody", state: "unknown", run_id: null },
      { activation_id: "act-a", state: "ended", status: "completed", worker_id: null },
    ]);
    await worker.close({ graceMs: 1_000 });
  });
});

describe("cancel of a run", () => {
  it("ends hundreds that wait without a worker or a sandbox, each with one result, while Redis serves others", async () => {
    await rig.sentinel();
    await enqueue(idsOf(150));
    await enqueue(["act-other"], { run_id: "run-2" });
    expect(await cancelRun(rig.open(), "run-1", mark)).toEqual({ waiting: 150 });
    expect(await untilNone(() => rig.queues.redis.scard("{rollcall}:pending:run-1"), 10_000)).toBe(0);
    expect(await runStatus(rig.queues, "run-1")).toMatchObject({ waiting: 0, ended: { cancelled: 150 } });
    expect((await rig.ended("act-149")).failure?.failure_reason).toBe("cancelled by anna: not needed");
    expect(await cancelRun(rig.open(), "run-1", mark)).toEqual({});
    expect(await runStatus(rig.queues, "run-2")).toMatchObject({ waiting: 1, ended: {} });
  });

  it("asks what runs to stop, and takes out what is parked and what waits for its next attempt", async () => {
    await rig.close();
    rig = await startRig({ retry_base_ms: 600_000, retry_max_ms: 600_000 });
    await rig.sentinel();
    const running: string[] = [];
    await rig.worker(async (claim) => {
      const { activation_id } = claim.activation;
      if (activation_id === "act-run") return runsUntilStopped(() => running.push(activation_id))(claim);
      const { attempt } = await claim.ledger.takeAttempt();
      await rig.store.putAttempt(activation_id, attemptOf(attempt));
      return { kind: "retry", attempt: attemptOf(attempt) };
    });
    await enqueue(["act-run", "act-retry"]);
    await vi.waitFor(async () => expect(await runStatus(rig.queues, "run-1")).toMatchObject({ delayed: 1 }), WAIT);
    await vi.waitFor(() => expect(running).toHaveLength(1), WAIT);
    await pauseRun(rig.queues, "run-1", mark);
    await enqueue(["act-parked"]);
    await vi.waitFor(async () => expect(await runStatus(rig.queues, "run-1")).toMatchObject({ parked: 1 }), WAIT);
    expect(await cancelRun(rig.open(), "run-1", mark)).toEqual({ running: 1, delayed: 1, parked: 1 });
    for (const id of ["act-run", "act-retry", "act-parked"]) expect((await rig.ended(id)).status).toBe("cancelled");
  });

  it("reaches one whose worker was lost, without another worker", async () => {
    await enqueue(["act-a"]);
    const queues = rig.open();
    // Claimed by a worker that is gone: active, and nobody renews its lock.
    const lost = new Worker(ACTIVATIONS, null, { connection: redisOptions(queues.target, "blocking"), prefix: PREFIX, autorun: false });
    expect((await lost.getNextJob("a-token"))?.id).toBe("act-a");
    await lost.close(true);
    await queues.redis.del("{rollcall}:activations:act-a:lock");
    expect(await cancelActivation(queues, "act-a", mark)).toMatchObject({ state: "starting", outcome: "asked" });
    await rig.sentinel();
    expect((await rig.ended("act-a")).status).toBe("cancelled");
  });

  it("that races the ends gives one result each, whichever won, and each is delivered once [D12]", async () => {
    await rig.sentinel();
    const cancelling: Promise<unknown>[] = [];
    let begun = 0;
    await rig.worker(
      async ({ activation, generation, ledger, signal }) => {
        const { attempt } = await ledger.takeAttempt();
        begun += 1;
        if (begun === 20) cancelling.push(cancelRun(rig.open(), "run-1", mark));
        // As long as a few turns of Redis, so that cancels meet every moment of it.
        for (let turn = 0; turn < (begun % 5) * 3 && !signal.aborted; turn += 1) await rig.queues.redis.ping();
        const cancelled = (await ledger.cancelMark()) !== null;
        const result = { ...completedOf(activation, generation, attempt), ...(cancelled ? { status: "cancelled" as const } : {}) };
        return { kind: "ended", ...(await rig.store.commit(result)) };
      },
      { concurrency: 8 },
    );
    const ids = idsOf(60);
    await enqueue(ids, { reply_to: "results" });
    for (const id of ids) await rig.ended(id);
    await Promise.all(cancelling);
    const { ended } = await runStatus(rig.queues, "run-1");
    expect((ended.completed ?? 0) + (ended.cancelled ?? 0)).toBe(60);
    expect(ended.completed).toBeGreaterThan(0);
    expect(ended.cancelled).toBeGreaterThan(0);
    const delivered = await rig.queues.results("results").getJobs();
    expect(delivered).toHaveLength(60);
    for (const { data } of delivered) expect(data.status).toBe((await rig.store.readCommit(data.activation_id))?.status);
  });
});

describe("pause and resume of a run", () => {
  it("hold back what has not begun, say who and why, and let it go on", async () => {
    await rig.sentinel();
    expect(await pauseRun(rig.open(), "run-1", mark)).toBe(true);
    expect(await pauseRun(rig.open(), "run-1", { ...mark, by: "ben" })).toBe(false);
    await enqueue(["act-a", "act-b"]);
    await rig.worker(completes(rig.store));
    await vi.waitFor(
      async () => expect(await runStatus(rig.queues, "run-1")).toMatchObject({ parked: 2, paused: true, pause: mark }),
      WAIT,
    );
    expect(await resumeRun(rig.open(), "run-1")).toBe(true);
    for (const id of ["act-a", "act-b"]) expect((await rig.ended(id)).status).toBe("completed");
    expect(await resumeRun(rig.open(), "run-1")).toBe(false);
    expect(await readPause(rig.queues, "run-1")).toBeNull();
    expect([await isKnownRun(rig.queues, "run-1"), await isKnownRun(rig.queues, "run-none")]).toEqual([true, false]);
  });
});

describe("retry", () => {
  const parts = () => ({ queues: rig.open(), store: rig.store, keys: TEST_KEYS });

  it("runs an ended one again as a new generation that keeps counting attempts", async () => {
    await rig.sentinel();
    await rig.worker(completes(rig.store));
    await enqueue(["act-a"]);
    await rig.ended("act-a");
    expect(await retryActivations(parts(), ["act-a", "act-nobody"])).toMatchObject([
      { activation_id: "act-a", state: "ended", outcome: "done", why: null },
      { activation_id: "act-nobody", state: "unknown", outcome: "impossible" },
    ]);
    expect(await rig.ended("act-a", 1)).toMatchObject({ generation: 1, episode_id: { attempt: 1 } });
  });

  it("cannot be of one whose secrets were deleted at its end, or whose job a cancel removed, and leaves them as they are", async () => {
    await rig.sentinel();
    const worker = await rig.worker(completes(rig.store));
    await enqueue(["act-a"], { model: { api_key: "a-secret-key-0815" } });
    const result = await rig.ended("act-a");
    await worker.close({ graceMs: 1_000 });
    await enqueue(["act-b"]);
    await cancelActivation(rig.queues, "act-b", mark);
    await rig.ended("act-b");
    await enqueue(["act-c"]);
    expect(await retryActivations(parts(), ["act-a", "act-b", "act-c"])).toMatchObject([
      { outcome: "impossible", why: "secrets_deleted" },
      { outcome: "impossible", why: "job_removed" },
      { state: "waiting", outcome: "impossible", why: null },
    ]);
    expect(await rig.store.readCommit("act-a")).toEqual(result);
  });

  it("of a run takes those that ended as wanted", async () => {
    await rig.sentinel();
    await rig.worker(async ({ activation, generation, ledger }) => {
      const { attempt } = await ledger.takeAttempt();
      const failed = Number(activation.activation_id.slice(4)) % 3 === 0 && generation === 0;
      const result = { ...completedOf(activation, generation, attempt), ...(failed ? { status: "failed" as const } : {}) };
      return { kind: "ended", ...(await rig.store.commit(result)) };
    });
    const ids = idsOf(9);
    await enqueue(ids);
    for (const id of ids) await rig.ended(id);
    const answers: RetryAnswer[] = [];
    for await (const piece of retryRun(parts(), "run-1", (status) => status === "failed")) answers.push(...piece);
    expect(answers.map(({ activation_id, outcome }) => `${activation_id} ${outcome}`).sort()).toEqual([
      "act-0 done",
      "act-3 done",
      "act-6 done",
    ]);
    for (const id of ["act-0", "act-3", "act-6"]) expect((await rig.ended(id, 1)).status).toBe("completed");
    await vi.waitFor(async () => expect(await runStatus(rig.queues, "run-1")).toMatchObject({ ended: { completed: 9 } }), WAIT);
  });

  it("waits for what has not ended no longer than it makes progress", async () => {
    let left = 5;
    expect(await untilNone(() => Promise.resolve(Math.max(2, left--)), 300)).toBe(2);
  });
});
