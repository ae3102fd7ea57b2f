// SPDX-License-Identifier: Apache-2.0
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { CancelMark } from "../../src/activation/ports.ts";
import { cancelActivation, readCancelMark } from "../../src/queue/cancel.ts";
import { enqueueAgain } from "../../src/queue/enqueue-again.ts";
import { enqueueActivations } from "../../src/queue/enqueue.ts";
import { setRunGate } from "../../src/queue/gate.ts";
import { runStatus } from "../../src/queue/run-status.ts";
import { attemptOf } from "../support/result-documents.ts";
import { activationOf, completedOf, completes, startRig, stopReason, TEST_KEYS, type Rig } from "./rig.ts";

const WAIT = { timeout: 30_000, interval: 20 };
const mark: CancelMark = { by: "anna", at: "2026-11-29T16:00:00.000Z", reason: "not needed" };
let rig: Rig;
afterEach(() => rig.close());
beforeEach(async () => {
  rig = await startRig({ lock_renew_ms: 1_000, retry_base_ms: 60_000, retry_max_ms: 60_000 });
  await enqueueActivations(rig.queues, [activationOf("act-a", { max_attempts: 9 })], { keys: TEST_KEYS });
});

const cancel = (id = "act-a") => cancelActivation(rig.open(), id, mark);

it("cancels one that waits, with one result that says who and why [D12]", async () => {
  expect(await cancel()).toMatchObject({ state: "waiting", outcome: "done" });
  await rig.sentinel();
  const result = await rig.ended("act-a");
  expect(result).toMatchObject({ status: "cancelled", cause_class: "cancelled", failure: { failure_kind: "cancelled", status_code: 409 } });
  expect(result.failure!.failure_reason).toBe("cancelled by anna: not needed");
  expect(result.observations.gaps).toEqual([{ code: "harness_not_run" }]);
});

it("is joined by a producer that comes as its end is about to be recorded, also by one that wants another generation", async () => {
  expect(await cancel()).toMatchObject({ state: "waiting", outcome: "done" }); // its job is gone; nobody has recorded the end
  const activation = activationOf("act-a", { max_attempts: 9 });
  expect(await enqueueActivations(rig.queues, [activation], { keys: TEST_KEYS })).toMatchObject([{ outcome: "joined" }]);
  expect(await enqueueAgain(rig.queues, rig.store, [activation], { keys: TEST_KEYS })).toMatchObject([{ outcome: "joined" }]);
  await rig.sentinel();
  expect(await rig.ended("act-a")).toMatchObject({ status: "cancelled", generation: 0 });
});

it("cancels one that is parked, and its place goes to another [D12]", async () => {
  await setRunGate(rig.queues, "run-1", { paused: true });
  await rig.sentinel();
  await rig.worker(completes(rig.store));
  await vi.waitFor(async () => expect(await runStatus(rig.queues, "run-1")).toMatchObject({ parked: 1 }), WAIT);
  expect(await cancel()).toMatchObject({ state: "parked", outcome: "done" });
  expect((await rig.ended("act-a")).status).toBe("cancelled");
  expect(await runStatus(rig.queues, "run-1")).toMatchObject({ parked: 0, ended: { cancelled: 1 } });
});

it("cancels one that waits for its next attempt, and keeps what was saved of the last [D12]", async () => {
  await rig.sentinel();
  await rig.worker(async ({ ledger, activation }) => {
    const { attempt } = await ledger.takeAttempt();
    await rig.store.putAttempt(activation.activation_id, attemptOf(attempt));
    return { kind: "retry", attempt: attemptOf(attempt) };
  });
  await vi.waitFor(async () => expect(await runStatus(rig.queues, "run-1")).toMatchObject({ delayed: 1 }), WAIT);
  expect(await cancel()).toMatchObject({ state: "delayed", outcome: "done" });
  expect(await rig.ended("act-a")).toMatchObject({ status: "cancelled", attempts: [{ attempt: 0 }] });
});

it("aborts one that is starting or running with the mark, before the next heartbeat [D12]", async () => {
  await rig.close();
  rig = await startRig({ lock_duration_ms: 60_000, lock_renew_ms: 25_000 });
  await enqueueActivations(rig.queues, [activationOf("act-a")], { keys: TEST_KEYS });
  const seen: unknown[] = [];
  let proceed = (): void => undefined;
  const starting = new Promise<void>((resolve) => (proceed = resolve));
  await rig.sentinel();
  await rig.worker(async ({ activation, generation, ledger, signal }) => {
    seen.push("starting");
    await starting;
    const { attempt } = await ledger.takeAttempt();
    seen.push("running");
    seen.push(await stopReason(signal));
    const cancelled = { ...completedOf(activation, generation, attempt), status: "cancelled" as const };
    return { kind: "ended", ...(await rig.store.commit(cancelled)) };
  });
  await vi.waitFor(() => expect(seen).toContain("starting"), WAIT);
  expect(await cancel()).toMatchObject({ state: "starting", outcome: "asked" });
  proceed();
  const begun = performance.now();
  expect((await rig.ended("act-a")).status).toBe("cancelled");
  expect(performance.now() - begun).toBeLessThan(20_000);
  expect(seen).toEqual(["starting", "running", { kind: "cancelled", mark }]);
});

it("only asks for the end of one that waits again because its worker lost it: the session may come to its own end first [D12]", async () => {
  await rig.sentinel();
  let [lost, goOn] = [(): void => undefined, (): void => undefined];
  const [claimLost, mayEnd] = [new Promise<void>((resolve) => (lost = resolve)), new Promise<void>((resolve) => (goOn = resolve))];
  await rig.worker(
    async ({ activation, ledger }) => {
      const { attempt } = await ledger.takeAttempt();
      await rig.queues.redis.del("{rollcall}:activations:act-a:lock");
      lost();
      await mayEnd;
      return { kind: "ended", ...(await rig.store.commit(completedOf(activation, 0, attempt))) };
    },
    { concurrency: 1 },
  );
  await claimLost;
  await vi.waitFor(async () => expect(await rig.queues.activations.getJobState("act-a")).toBe("waiting"), WAIT);
  expect(await cancel()).toMatchObject({ state: "running", outcome: "asked" });
  goOn();
  const result = await rig.ended("act-a");
  expect(["completed", "cancelled"]).toContain(result.status); // whichever was committed first; one of them
});

it("finds a mark at the heartbeat when its announcement was lost [D12]", async () => {
  const reasons: unknown[] = [];
  await rig.sentinel();
  await rig.worker(async ({ ledger, signal }) => {
    await ledger.takeAttempt();
    reasons.push("running");
    const reason = await stopReason(signal);
    reasons.push(reason, await ledger.cancelMark());
    return { kind: "handed_back", reason: reason.kind };
  });
  await vi.waitFor(() => expect(reasons).toEqual(["running"]), WAIT);
  await rig.queues.redis.set("{rollcall}:cancel:act-a", JSON.stringify(mark));
  expect((await rig.ended("act-a")).status).toBe("cancelled");
  expect(reasons).toEqual(["running", { kind: "cancelled", mark }, mark]);
});

it("answers running for one whose attempt has begun [D12]", async () => {
  let running = false;
  await rig.sentinel();
  await rig.worker(async ({ ledger, signal }) => {
    await ledger.takeAttempt();
    running = true;
    return { kind: "handed_back", reason: (await stopReason(signal)).kind };
  });
  await vi.waitFor(() => expect(running).toBe(true), WAIT);
  expect(await cancel()).toMatchObject({ state: "running", outcome: "asked" });
  expect((await rig.ended("act-a")).status).toBe("cancelled");
});

it("changes nothing about one that has ended, or was never there [D12]", async () => {
  await rig.sentinel();
  await rig.worker(completes(rig.store));
  const result = await rig.ended("act-a");
  expect(await cancel()).toMatchObject({ state: "ended", outcome: "nothing" });
  expect(await rig.store.readCommit("act-a")).toEqual(result);
  expect(await cancel("act-nobody")).toMatchObject({ state: "unknown", outcome: "impossible" });
  expect(await readCancelMark(rig.queues, "act-nobody")).toBeNull();
});

it("sees a mark at the claim when the job was taken in the same moment", async () => {
  await rig.queues.redis.set("{rollcall}:cancel:act-a", JSON.stringify(mark));
  await rig.sentinel();
  await rig.worker(() => Promise.reject(new Error("must not run")));
  expect((await rig.ended("act-a")).failure!.failure_reason).toBe("cancelled by anna: not needed");
});
