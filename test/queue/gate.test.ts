// SPDX-License-Identifier: Apache-2.0
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { enqueueActivations } from "../../src/queue/enqueue.ts";
import { setRunGate } from "../../src/queue/gate.ts";
import { runStatus } from "../../src/queue/run-status.ts";
import { activationOf, completes, runsUntilStopped, startRig, stopReason, TEST_KEYS, type Rig, type Run } from "./rig.ts";

const WAIT = { timeout: 30_000, interval: 50 };
let rig: Rig;
beforeEach(async () => {
  rig = await startRig();
});
afterEach(() => rig.close());

/** Counts runs, and how many there are at once at most. */
function counting(inner: Run): { run: Run; most: () => number; runs: () => number } {
  let [now, most, runs] = [0, 0, 0];
  return {
    most: () => most,
    runs: () => runs,
    async run(claim) {
      now += 1;
      runs += 1;
      most = Math.max(most, now);
      try {
        return await inner(claim);
      } finally {
        now -= 1;
      }
    },
  };
}

it("limits one run over three workers, while another run goes past it, and all of it is done in the end", async () => {
  await setRunGate(rig.queues, "run-1", { limit: 2 });
  const ids = Array.from({ length: 30 }, (_, index) => `act-${index}`);
  await enqueueActivations(rig.queues, [...ids.map((id) => activationOf(id)), activationOf("act-free", { run_id: "run-2" })], {
    keys: TEST_KEYS,
  });
  const slow: Run = async (claim) => {
    // Long enough for the others to try: until Redis has answered a few times.
    for (let turn = 0; turn < 20; turn += 1) await rig.queues.redis.ping();
    return completes(rig.store)(claim);
  };
  const counted = counting(slow);
  await rig.sentinel();
  for (let n = 0; n < 3; n += 1) {
    await rig.worker((claim) => (claim.activation.run_id === "run-1" ? counted.run(claim) : slow(claim)), { concurrency: 4 });
  }
  await rig.ended("act-free");
  for (const id of ids) await rig.ended(id);
  expect(counted.most()).toBe(2);
  expect(counted.runs()).toBe(30); // a parked job is not a run
  expect(await runStatus(rig.queues, "run-1")).toMatchObject({ parked: 0, running: 0, ended: { completed: 30 }, limit: 2 });
});

it("parks a paused run uncharged, and runs it when it is opened", async () => {
  await setRunGate(rig.queues, "run-1", { paused: true });
  const ids = ["act-a", "act-b", "act-c"];
  await enqueueActivations(
    rig.queues,
    ids.map((id) => activationOf(id)),
    { keys: TEST_KEYS },
  );
  const counted = counting(completes(rig.store));
  await rig.sentinel();
  await rig.worker(counted.run);
  await vi.waitFor(async () => expect(await runStatus(rig.queues, "run-1")).toMatchObject({ parked: 3, waiting: 0, paused: true }), WAIT);
  expect(counted.runs()).toBe(0);
  await setRunGate(rig.queues, "run-1", { paused: false });
  for (const id of ids) expect((await rig.ended(id)).episode_id.attempt).toBe(0);
});

it("lets what runs go on in a paused run, and gives slots back when a limit grows", async () => {
  const started: string[] = [];
  const release = new AbortController();
  await setRunGate(rig.queues, "run-1", { limit: 1 });
  await rig.sentinel();
  await rig.worker(async (claim) => {
    started.push(claim.activation.activation_id);
    await Promise.race([stopReason(claim.signal), stopReason(release.signal)]);
    return completes(rig.store)(claim);
  });
  await enqueueActivations(
    rig.queues,
    ["act-a", "act-b", "act-c"].map((id) => activationOf(id)),
    { keys: TEST_KEYS },
  );
  await vi.waitFor(async () => expect(await runStatus(rig.queues, "run-1")).toMatchObject({ running: 1, parked: 2 }), WAIT);
  await setRunGate(rig.queues, "run-1", { limit: 2 });
  await vi.waitFor(() => expect(started).toHaveLength(2), WAIT);
  await setRunGate(rig.queues, "run-1", { paused: true, limit: null });
  release.abort();
  for (const id of started) await rig.ended(id);
  expect(await runStatus(rig.queues, "run-1")).toMatchObject({ parked: 1, ended: { completed: 2 } });
  await setRunGate(rig.queues, "run-1", { paused: false });
  await vi.waitFor(async () => expect(await runStatus(rig.queues, "run-1")).toMatchObject({ ended: { completed: 3 } }), WAIT);
});

it("frees the slot of a dead worker when its lease runs out", async () => {
  await setRunGate(rig.queues, "run-1", { limit: 1 });
  await rig.queues.redis.zadd("{rollcall}:running:run-1", Date.now() + 4_000, "act-of-a-dead-worker");
  await rig.sentinel();
  await rig.worker(completes(rig.store));
  await enqueueActivations(rig.queues, [activationOf("act-a")], { keys: TEST_KEYS });
  await vi.waitFor(async () => expect(await runStatus(rig.queues, "run-1")).toMatchObject({ parked: 1 }), WAIT);
  await vi.waitFor(async () => expect(await runStatus(rig.queues, "run-1")).toMatchObject({ running: 0, parked: 1 }), WAIT);
  // Any look at the gate finds the slot free; here, one by hand.
  await setRunGate(rig.queues, "run-1", {});
  await rig.ended("act-a");
});

it("keeps the slot of a session that runs longer than a lease", async () => {
  await setRunGate(rig.queues, "run-1", { limit: 1 });
  const started: string[] = [];
  await rig.worker(runsUntilStopped(({ activation }) => started.push(activation.activation_id)));
  await enqueueActivations(
    rig.queues,
    ["act-a", "act-b"].map((id) => activationOf(id)),
    { keys: TEST_KEYS },
  );
  await vi.waitFor(() => expect(started).toHaveLength(1), WAIT);
  const leased = Number(await rig.queues.redis.zscore("{rollcall}:running:run-1", started[0]!));
  const renewed = async (): Promise<number> => Number(await rig.queues.redis.zscore("{rollcall}:running:run-1", started[0]!));
  await vi.waitFor(async () => expect(await renewed()).toBeGreaterThan(leased + 3_000), WAIT);
  expect(started).toHaveLength(1);
});
