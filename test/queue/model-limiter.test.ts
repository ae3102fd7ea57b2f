// SPDX-License-Identifier: Apache-2.0
import { afterEach, describe, expect, it, vi } from "vitest";
import { cancelActivation } from "../../src/queue/cancel.ts";
import { enqueueActivations } from "../../src/queue/enqueue.ts";
import { enterModel, leaveModel, modelState, refusedByModel, refusingModels } from "../../src/queue/model-limiter.ts";
import { runStatus } from "../../src/queue/run-status.ts";
import { attemptOf } from "../support/result-documents.ts";
import { activationOf, completedOf, completes, runsUntilStopped, startRig, TEST_KEYS, type Rig, type Run } from "./rig.ts";

const WAIT = { timeout: 40_000, interval: 20 };
const SERVER = "http://model.test:8000";
const MODEL = { model: { base_url: `${SERVER}/ng-rollout/{capture_key}/v1` } };

let rig: Rig;
const begin = async (settings: Parameters<typeof startRig>[0] = {}): Promise<void> => {
  rig = await startRig({ model_grow_ms: 300, retry_base_ms: 200, retry_max_ms: 2_000, ...settings });
};
afterEach(() => rig.close());

const add = (ids: readonly string[]) =>
  enqueueActivations(
    rig.queues,
    ids.map((id) => activationOf(id, MODEL)),
    { keys: TEST_KEYS },
  );
const numbered = (count: number): string[] => Array.from({ length: count }, (_, index) => `act-${index}`);

describe("the limiter of a model server", () => {
  it("sends 16 sessions back to wait when the server has too many, charges none, lets fewer in and then more again [E16]", async () => {
    await begin();
    const ids = numbered(16);
    let [open, running, refusals] = [false, 0, 0];
    const together: number[] = [];
    const run: Run = async (claim) => {
      const { attempt } = await claim.ledger.takeAttempt();
      running += 1;
      together.push(running);
      try {
        for (let turn = 0; turn < 20; turn += 1) await rig.queues.redis.ping(); // long enough for the others to begin
        if (open) return { kind: "ended", ...(await rig.store.commit(completedOf(claim.activation, 0, attempt))) };
        refusals += 1;
        const refused = attemptOf(attempt, { charged: false });
        await rig.store.putAttempt(claim.activation.activation_id, refused);
        return { kind: "back_off", attempt: refused, wait_ms: refusals < 20 ? null : 100 };
      } finally {
        running -= 1;
      }
    };
    await rig.sentinel();
    await rig.worker(run, { concurrency: 8 });
    await rig.worker(run, { concurrency: 8 });
    await add(ids);
    await vi.waitFor(async () => expect(await modelState(rig.queues, SERVER)).toMatchObject({ limit: 1 }), WAIT);
    expect(Math.max(...together)).toBeGreaterThan(8);
    together.length = 0;
    open = true;
    for (const id of ids) expect(await rig.ended(id)).toMatchObject({ status: "completed" });
    const charged = await Promise.all(ids.map((id) => rig.queues.redis.hget(`{rollcall}:ledger:${id}`, "charged")));
    expect(charged.map(Number)).toEqual(ids.map(() => 0));
    expect(refusals).toBeGreaterThan(16);
    expect(together[0]).toBe(1);
    await vi.waitFor(async () => expect((await modelState(rig.queues, SERVER)).limit).toBeGreaterThanOrEqual(4), WAIT);
    expect(await modelState(rig.queues, SERVER)).toMatchObject({ running: 0, parked: 0 });
  });

  it("halves once for all sessions that ran into the same overload, and once more for those that began after it", async () => {
    await begin({ model_grow_ms: 600_000 });
    const slots = await Promise.all(numbered(16).map(async (id) => [id, (await enterModel(rig.queues, SERVER, id))!] as const));
    for (const [id, slot] of slots) await refusedByModel(rig.queues, slot, id, 0);
    expect(await modelState(rig.queues, SERVER)).toMatchObject({ limit: 8, running: 0 });
    await vi.waitFor(async () => expect(await enterModel(rig.queues, SERVER, "later")).not.toBeNull(), WAIT);
    const later = (await enterModel(rig.queues, SERVER, "later"))!;
    expect(await refusedByModel(rig.queues, later, "later", 0)).toMatchObject({ limit: 1, first: true });
  });

  it("pauses as long as the server asks, else twice as long from refusal to refusal, until a session was served", async () => {
    await begin({ retry_base_ms: 1_000, retry_max_ms: 3_000 });
    const slot = { server: SERVER, epoch: 0 };
    const waits: number[] = [];
    for (let epoch = 0; epoch < 3; epoch += 1) {
      waits.push((await refusedByModel(rig.queues, { ...slot, epoch }, "act", null)).waitMs);
    }
    expect(waits.map((ms) => Math.round(ms / 1_000))).toEqual([1, 2, 3]);
    expect((await refusedByModel(rig.queues, { ...slot, epoch: 3 }, "act", 60_000)).waitMs).toBe(60_000);
    await leaveModel(rig.queues, { ...slot, epoch: 4 }, "act", { served: true });
    expect(await rig.queues.redis.hget(`{rollcall}:model:${SERVER}`, "strikes")).toBeNull();
    expect(await enterModel(rig.queues, SERVER, "act")).toBeNull();
  });

  it("holds limiter.max_concurrent over all workers and runs, and frees the place of a dead worker", async () => {
    await begin({ model_max_concurrent: 3 });
    const started: string[] = [];
    const run = runsUntilStopped(({ activation }) => started.push(activation.activation_id));
    await rig.queues.redis.zadd(`{rollcall}:model-running:${SERVER}`, Date.now() + 1_500, "act-of-a-dead-worker");
    await enqueueActivations(
      rig.queues,
      numbered(8).map((id, index) => activationOf(id, { ...MODEL, run_id: `run-${index % 2}` })),
      { keys: TEST_KEYS },
    );
    for (let n = 0; n < 2; n += 1) await rig.worker(run, { concurrency: 4 });
    await vi.waitFor(async () => expect(await modelState(rig.queues, SERVER)).toMatchObject({ running: 3, parked: 6 }), WAIT);
    expect(started).toHaveLength(2);
    await vi.waitFor(() => expect(started).toHaveLength(3), WAIT); // the lease ran out, and a heartbeat saw it
    expect(await modelState(rig.queues, SERVER)).toMatchObject({ running: 3, parked: 5 });
  });

  it("wakes what waits also when whoever held the places is gone, of the server and of the run, and nobody else holds one", async () => {
    await begin({ model_max_concurrent: 1 });
    const { redis } = rig.queues;
    await redis.zadd(`{rollcall}:model-running:${SERVER}`, Date.now() + 2_000, "act-of-a-dead-worker");
    await redis.hset("{rollcall}:gate:run-2", "limit", 1);
    await redis.zadd("{rollcall}:running:run-2", Date.now() + 2_000, "act-of-a-dead-worker");
    await enqueueActivations(rig.queues, [activationOf("act-a", MODEL), activationOf("act-b", { run_id: "run-2" })], { keys: TEST_KEYS });
    await rig.sentinel();
    await rig.worker(completes(rig.store));
    await vi.waitFor(async () => {
      expect(await redis.zcard(`{rollcall}:model-parked:${SERVER}`)).toBe(1);
      expect(await redis.zcard("{rollcall}:parked:run-2")).toBe(1);
    }, WAIT);
    for (const id of ["act-a", "act-b"]) expect((await rig.ended(id)).status).toBe("completed");
    await vi.waitFor(async () => expect(await redis.exists("{rollcall}:parked-runs", "{rollcall}:parked-servers")).toBe(0), WAIT);
  });

  it("says since when a server refuses that has served nobody, and how many wait, until it serves again", async () => {
    await begin();
    await rig.sentinel();
    let open = false;
    await rig.worker(async (claim) => {
      if (open) return completes(rig.store)(claim);
      const { attempt } = await claim.ledger.takeAttempt();
      const refused = attemptOf(attempt, { charged: false });
      await rig.store.putAttempt(claim.activation.activation_id, refused);
      return { kind: "back_off", attempt: refused, wait_ms: 500 };
    });
    await add(numbered(3));
    await vi.waitFor(async () => {
      const status = await runStatus(rig.queues, "run-1");
      expect(status).toMatchObject({
        waiting: 0,
        running: 0,
        delayed: 3,
        delayed_for: { model_server: 3, able_worker: 0, next_attempt: 0 },
      });
    }, WAIT);
    expect(await refusingModels(rig.queues)).toEqual([]); // no minute yet
    const since = Date.now() - 3_600_000;
    await rig.queues.redis.hset(`{rollcall}:model:${SERVER}`, "refusing", since);
    await vi.waitFor(async () => {
      expect(await refusingModels(rig.queues)).toMatchObject([{ server: SERVER, since: new Date(since).toISOString(), waiting: 3 }]);
    }, WAIT);
    open = true;
    for (const id of numbered(3)) expect((await rig.ended(id)).status).toBe("completed");
    await vi.waitFor(async () => expect(await rig.queues.redis.exists("{rollcall}:refusing-servers")).toBe(0), WAIT);
  });

  it("a session that waits for its server can be cancelled, and holds no other back", async () => {
    await begin({ model_max_concurrent: 1 });
    await rig.sentinel();
    let release = (): void => undefined;
    const held = new Promise<void>((resolve) => (release = resolve));
    const ran: string[] = [];
    await rig.worker(async (claim) => {
      ran.push(claim.activation.activation_id);
      await held;
      return completes(rig.store)(claim);
    });
    await add(["act-a"]);
    await vi.waitFor(() => expect(ran).toEqual(["act-a"]), WAIT);
    await add(["act-b", "act-c"]);
    await vi.waitFor(async () => expect(await modelState(rig.queues, SERVER)).toMatchObject({ parked: 2 }), WAIT);
    await cancelActivation(rig.queues, "act-b", { by: "test", at: new Date().toISOString(), reason: "" });
    expect(await rig.ended("act-b")).toMatchObject({ status: "cancelled", attempts: [] });
    release();
    expect(await rig.ended("act-c")).toMatchObject({ status: "completed" });
  });
});
