// SPDX-License-Identifier: Apache-2.0
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { cancelRun } from "../../src/queue/cancel.ts";
import { cleanEnded } from "../../src/queue/clean.ts";
import { enqueueAgain } from "../../src/queue/enqueue-again.ts";
import { compareActivations, enqueueActivations } from "../../src/queue/enqueue.ts";
import { setRunGate } from "../../src/queue/gate.ts";
import { removeRun } from "../../src/queue/remove-run.ts";
import { runStatus } from "../../src/queue/run-status.ts";
import { attemptOf } from "../support/result-documents.ts";
import { activationOf, completes, runsUntilStopped, startRig, TEST_KEYS, type Rig } from "./rig.ts";

const WAIT = { timeout: 30_000, interval: 50 };
let rig: Rig;
beforeEach(async () => {
  rig = await startRig({ retry_base_ms: 600_000, retry_max_ms: 600_000, parked_recheck_ms: 600_000 });
});
afterEach(() => rig.close());

const enqueue = (ids: string[], runId: string) =>
  enqueueActivations(
    rig.queues,
    ids.map((id) => activationOf(id, { run_id: runId })),
    { keys: TEST_KEYS },
  );

/** Every key whose name holds one of these words. */
async function keysWith(...words: string[]): Promise<string[]> {
  const all = await rig.queues.redis.keys("*"); // a test's own Redis, with a few hundred keys
  return all.filter((key) => words.some((word) => key.includes(word))).sort();
}

describe("old ended jobs", () => {
  it("go with all that is kept of them, what has not ended and what ended later stays, and a dry run only counts [D10]", async () => {
    await rig.sentinel();
    const worker = await rig.worker(completes(rig.store));
    const old = Array.from({ length: 70 }, (_, index) => `old-${index}`);
    await enqueue(old, "run-old");
    await vi.waitFor(async () => expect(await runStatus(rig.queues, "run-old")).toMatchObject({ ended: { completed: 70 } }), WAIT);
    await vi.waitFor(async () => expect(await rig.queues.final.getCompletedCount()).toBe(70), WAIT);
    const before = Date.now() + 1;
    await vi.waitUntil(() => Date.now() > before, WAIT);
    await enqueue(["new-0"], "run-new");
    await rig.ended("new-0");
    await worker.close({ graceMs: 3_000 });
    await enqueue(["wait-0"], "run-old");
    const kept = await keysWith("new-0", "run-new", "wait-0");

    expect(await cleanEnded(rig.queues, { before, dryRun: true })).toEqual({ activations: 70, strays: 0 });
    expect(await rig.queues.final.getCompletedCount()).toBe(71);
    expect(await cleanEnded(rig.queues, { before, dryRun: false })).toEqual({ activations: 70, strays: 0 });
    expect(await keysWith("old-")).toEqual([]);
    expect(await keysWith("new-0", "run-new", "wait-0")).toEqual(kept);
    expect(await runStatus(rig.queues, "run-old")).toMatchObject({ waiting: 1, ended: {} });
    expect((await rig.store.readCommit("old-7"))?.status).toBe("completed"); // results are in the store, and stay
    expect(await cleanEnded(rig.queues, { before, dryRun: false })).toEqual({ activations: 0, strays: 0 });
  });

  it("leave nothing of a run whose last one went", async () => {
    await rig.sentinel();
    await rig.worker(completes(rig.store));
    await enqueue(["act-a"], "run-1");
    await rig.ended("act-a");
    await cleanEnded(rig.queues, { before: Date.now() + 1_000, dryRun: false });
    expect(await keysWith("act-a", "run-1")).toEqual([]);
  });

  it("refuse other content under their id, naming the fields; the same content has ended and is not run again [fault B3]", async () => {
    await rig.sentinel();
    const ran = completes(rig.store);
    let runs = 0;
    await rig.worker((claim) => {
      runs += 1;
      return ran(claim);
    });
    await enqueue(["act-a"], "run-1");
    const first = await rig.ended("act-a");
    await vi.waitFor(async () => expect(await rig.queues.final.getCompletedCount()).toBe(1), WAIT);
    await cleanEnded(rig.queues, { before: Date.now() + 1_000, dryRun: false });

    const options = { keys: TEST_KEYS, store: rig.store };
    const other = activationOf("act-a", { run_id: "run-1", input: "something else" });
    const conflict = [{ activation_id: "act-a", outcome: "conflict", fields: ["input"] }];
    expect(await compareActivations(rig.queues, [other], options)).toEqual(conflict);
    expect(await enqueueActivations(rig.queues, [other], options)).toEqual(conflict);
    expect(await keysWith("act-a")).toEqual([]);
    const same = activationOf("act-a", { run_id: "run-1" });
    expect(await enqueueActivations(rig.queues, [same, activationOf("act-b")], options)).toEqual([
      { activation_id: "act-a", outcome: "ended" },
      { activation_id: "act-b", outcome: "added" },
    ]);
    expect(await rig.ended("act-a")).toEqual(first);
    await rig.ended("act-b");
    expect(runs).toBe(2);
  });

  it("of an earlier generation go alone: the later one keeps its ledger and runs", async () => {
    await rig.sentinel();
    await rig.worker(completes(rig.store));
    await enqueue(["act-a"], "run-1");
    await rig.ended("act-a");
    const before = Date.now() + 1;
    await vi.waitUntil(() => Date.now() > before, WAIT);
    await setRunGate(rig.queues, "run-1", { paused: true });
    await enqueueAgain(rig.queues, rig.store, [activationOf("act-a")], { keys: TEST_KEYS });
    expect(await cleanEnded(rig.queues, { before, dryRun: false })).toMatchObject({ activations: 1 });
    await setRunGate(rig.queues, "run-1", { paused: false });
    expect(await rig.ended("act-a", 1)).toMatchObject({ generation: 1, episode_id: { attempt: 1 } });
  });

  it("whose parents were removed by hand go too", async () => {
    await rig.sentinel();
    await rig.worker(completes(rig.store));
    await enqueue(["act-a", "act-b"], "run-1");
    for (const id of ["act-a", "act-b"]) await rig.ended(id);
    await rig.queues.final.getBackend().remove("f-act-a", false);
    await rig.queues.redis.del("{rollcall}:final:f-act-b");
    const before = Date.now() + 1_000;
    expect(await cleanEnded(rig.queues, { before, dryRun: false })).toMatchObject({ activations: 1, strays: 1 });
    expect(await keysWith("activations:act-")).toEqual([]);
  });
});

describe("a run that is removed half done", () => {
  it("leaves no key, whatever its activations were waiting for [D14]", async () => {
    await rig.sentinel();
    const worker = await rig.worker(async (claim) => {
      if (!claim.activation.activation_id.startsWith("delayed")) return completes(rig.store)(claim);
      const { attempt } = await claim.ledger.takeAttempt();
      await rig.store.putAttempt(claim.activation.activation_id, attemptOf(attempt));
      return { kind: "retry", attempt: attemptOf(attempt) };
    });
    await enqueue(["ended-0", "ended-1", "delayed-0"], "half-run");
    await vi.waitFor(
      async () => expect(await runStatus(rig.queues, "half-run")).toMatchObject({ ended: { completed: 2 }, delayed: 1 }),
      WAIT,
    );
    await enqueueAgain(rig.queues, rig.store, [activationOf("ended-1", { run_id: "half-run" })], { keys: TEST_KEYS });
    await rig.ended("ended-1", 1);
    await setRunGate(rig.queues, "half-run", { paused: true, limit: 3 });
    await enqueue(["parked-0", "parked-1"], "half-run");
    await vi.waitFor(async () => expect(await runStatus(rig.queues, "half-run")).toMatchObject({ parked: 2 }), WAIT);
    await worker.close({ graceMs: 3_000 });
    await enqueue(["waiting-0", "stuck-0", "lonely-0"], "half-run");
    // Stuck for ever: its child's record is gone, so that nothing will release it. And the opposite.
    await rig.queues.redis.del("{rollcall}:activations:stuck-0");
    await rig.queues.redis.zrem("{rollcall}:activations:prioritized", "stuck-0");
    await rig.queues.redis.del("{rollcall}:final:f-lonely-0");
    await enqueue(["other-0"], "other-run");
    const others = await keysWith("other-");
    const names = ["half-run", "ended-", "delayed-0", "parked-", "waiting-0", "stuck-0", "lonely-0"];

    expect(await removeRun(rig.queues, "half-run", { dryRun: true })).toEqual({ ended: 2, open: 6, held: 0 });
    expect((await keysWith(...names)).length).toBeGreaterThan(20);
    expect(await removeRun(rig.queues, "half-run", { dryRun: false })).toEqual({ ended: 2, open: 6, held: 0 });
    expect(await keysWith(...names)).toEqual([]);
    for (const queue of [rig.queues.activations, rig.queues.final]) {
      expect((await queue.getJobs()).map((job) => job.id).filter((id) => names.some((name) => id!.includes(name)))).toEqual([]);
    }
    expect(await keysWith("other-")).toEqual(others);
    await rig.worker(completes(rig.store));
    expect((await rig.ended("other-0")).status).toBe("completed");
  });

  it("is left as it is while a worker holds one of it; cancelled, it goes", async () => {
    await rig.sentinel();
    const started: string[] = [];
    await rig.worker(
      runsUntilStopped(({ activation }) => started.push(activation.activation_id)),
      { concurrency: 1 },
    );
    await enqueue(["act-a", "act-b"], "run-1");
    await vi.waitFor(() => expect(started).toHaveLength(1), WAIT);
    const before = await keysWith("act-", "run-1");
    expect(await removeRun(rig.queues, "run-1", { dryRun: false })).toEqual({ ended: 0, open: 2, held: 1 });
    expect(await keysWith("act-", "run-1")).toEqual(before);
    await cancelRun(rig.queues, "run-1", { by: "a test", at: new Date().toISOString(), reason: "" });
    for (const id of ["act-a", "act-b"]) await rig.ended(id);
    expect(await removeRun(rig.queues, "run-1", { dryRun: false })).toMatchObject({ ended: 2, open: 0, held: 0 });
    expect(await keysWith("act-", "run-1")).toEqual([]);
  });
});
