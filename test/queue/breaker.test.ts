// SPDX-License-Identifier: Apache-2.0
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Claim, RunEnd } from "../../src/activation/ports.ts";
import type { Sign } from "../../src/activation/sign.ts";
import { breakerState, setBreaker, tellBreaker } from "../../src/queue/breaker.ts";
import { enqueueActivations } from "../../src/queue/enqueue.ts";
import { enterGate, leaveGate, setRunGate } from "../../src/queue/gate.ts";
import { runStatus } from "../../src/queue/run-status.ts";
import { attemptOf } from "../support/result-documents.ts";
import { activationOf, completes, startRig, TEST_KEYS, type Rig } from "./rig.ts";

const WAIT = { timeout: 40_000, interval: 20 };
const GOOD: Sign = { kind: "good" };
const bad = (cause_code: string, answered = false): Sign => ({
  kind: "bad",
  cause: { cause_class: "infrastructure", failure_kind: "agent_run_error", cause_code, answered, reason: `${cause_code}!` },
});

let rig: Rig;
beforeEach(async () => {
  rig = await startRig({ breaker_after: 3, breaker_base_ms: 600_000, breaker_max_ms: 3_600_000 });
});
afterEach(() => rig.close());

const tell = (id: string, sign: Sign | { kind: "answered" }) =>
  tellBreaker(rig.queues, { runId: "run-1", jobId: id, activationId: id }, sign);
const state = () => breakerState(rig.queues, "run-1");
/** As if its time had come. */
const due = () => rig.queues.redis.hset("{rollcall}:gate:run-1", "breaker_until", 1);
const enter = (id: string) => enterGate(rig.queues, "run-1", id);

describe("what opens a run's breaker", () => {
  it("is the same failure of enough different activations in a row, once, whoever tells of it", async () => {
    for (const id of ["a", "a", "a", "b"]) expect(await tell(id, bad("sandbox_failed"))).toEqual({ charged: true });
    expect(await state()).toEqual({ openings: [], open: null });
    const told = await Promise.all(["c", "d", "e", "f"].map((id) => tell(id, bad("sandbox_failed"))));
    expect(told.filter(({ charged }) => charged)).toHaveLength(1); // the one that opened it; the others met what it had met
    const { openings, open } = await state();
    expect(openings).toMatchObject([{ cause_code: "sandbox_failed", reason: "sandbox_failed!", trials: 0, closed_at: null }]);
    expect(openings[0]!.activations).toHaveLength(3);
    expect(open!.retry_in_ms).toBeGreaterThan(500_000);
    expect(await enter("g")).toBe(false);
  });

  it.each<[string, (Sign | { kind: "answered" })[]]>([
    ["a success between them", [bad("x"), bad("x"), GOOD, bad("x"), bad("x")]],
    ["another failure between them", [bad("x"), bad("x"), bad("y"), bad("x"), bad("x")]],
    ["a model that answers where none had", [bad("x"), bad("x"), { kind: "answered" }, bad("x"), bad("x")]],
    ["a failure of a task's own grant", [bad("x"), bad("x"), { kind: "none" }, { kind: "none" }]],
  ])("is not %s", async (_what, signs) => {
    for (const [index, sign] of signs.entries()) await tell(`a-${index}`, sign);
    expect((await state()).open).toBeNull();
  });

  it("is not stopped by an answer when sessions break off after answers", async () => {
    for (const id of ["a", "b", "c"]) {
      await tell(id, { kind: "answered" });
      await tell(id, bad("stream_lost", true));
    }
    expect((await state()).open).not.toBeNull();
  });

  it("is nothing at all with --breaker off", async () => {
    await setBreaker(rig.queues, "run-1", "off");
    for (const id of ["a", "b", "c", "d"]) expect(await tell(id, bad("x"))).toEqual({ charged: true });
    expect((await state()).openings).toEqual([]);
  });
});

describe("an open breaker", () => {
  beforeEach(async () => {
    for (const id of ["a", "b", "c"]) await tell(id, bad("sandbox_failed"));
  });

  it("lets one activation try when its time has come; each that fails doubles the time and is not charged", async () => {
    await due();
    expect([await enter("t"), await enter("u"), await enter("v")]).toEqual([true, false, false]);
    expect(await tell("u", GOOD)).toEqual({ charged: true }); // a session from before; only the trial tells
    expect(await tell("t", bad("sandbox_failed"))).toEqual({ charged: false });
    await leaveGate(rig.queues, "run-1", "t");
    let { openings, open } = await state();
    expect(openings[0]!.trials).toBe(1);
    expect(Math.round(open!.retry_in_ms! / 60_000)).toBe(20);
    for (let n = 0; n < 4; n += 1) {
      await due();
      await enter("t");
      await tell("t", bad("sandbox_failed"));
    }
    ({ open } = await state());
    expect(Math.round(open!.retry_in_ms! / 60_000)).toBe(60);
  });

  it("is closed by the trial's success, or by its first answer where none had come before", async () => {
    await due();
    await enter("t");
    await tell("t", { kind: "answered" });
    expect(await state()).toMatchObject({ open: null, openings: [{ trials: 0, closed_at: expect.any(String) as string }] });
    expect([await enter("u"), await enter("v")]).toEqual([true, true]);
    for (const id of ["a", "b"]) await tell(id, bad("sandbox_failed"));
    expect((await state()).open).toBeNull(); // the count begins anew
  });

  it("lets the next one try when the trial ended without telling anything, or its worker died", async () => {
    await due();
    await enter("t");
    expect(await enter("u")).toBe(false);
    await leaveGate(rig.queues, "run-1", "t");
    expect(await enter("u")).toBe(true);
    await rig.queues.redis.zadd("{rollcall}:running:run-1", 1, "u");
    expect(await enter("v")).toBe(true);
  });

  it("leaves a human's pause alone, and is lifted by who opens the run by hand", async () => {
    await setRunGate(rig.queues, "run-1", { paused: true });
    await due();
    expect(await enter("t")).toBe(false);
    await setRunGate(rig.queues, "run-1", { paused: false });
    expect((await state()).open).toBeNull();
    expect(await enter("t")).toBe(true);
  });

  it("does not try again by itself with --breaker stop", async () => {
    await setBreaker(rig.queues, "run-1", "stop");
    expect((await state()).open).toBeNull(); // a new start lifts what was
    for (const id of ["a", "b", "c"]) await tell(id, bad("sandbox_failed"));
    expect((await state()).open).toEqual({ retry_in_ms: null });
    expect(await enter("t")).toBe(false);
  });
});

it("one run's breaker is nothing to another run", async () => {
  for (const id of ["a", "b", "c"]) await tell(id, bad("sandbox_failed"));
  expect(await enterGate(rig.queues, "run-2", "t")).toBe(true);
});

it("a run of 60 stops after three alike failures, leaves the others untouched, and goes on when it works again, charging only those three", async () => {
  await rig.close();
  rig = await startRig({ breaker_after: 3, breaker_base_ms: 300, breaker_max_ms: 600 });
  const ids = Array.from({ length: 60 }, (_, index) => `act-${index}`);
  let works = false;
  const failed = new Set<string>();
  async function run(claim: Claim): Promise<RunEnd> {
    const { activation, ledger } = claim;
    if (works) {
      await ledger.tell(GOOD);
      return completes(rig.store)(claim);
    }
    const { attempt } = await ledger.takeAttempt();
    failed.add(activation.activation_id);
    const { charged } = await ledger.tell(bad("sandbox_failed"));
    return { kind: "retry", attempt: attemptOf(attempt, { charged }) };
  }
  await rig.sentinel();
  for (let n = 0; n < 2; n += 1) await rig.worker(run, { concurrency: 2 });
  await enqueueActivations(
    rig.queues,
    ids.map((id) => activationOf(id, { max_attempts: 2 })),
    { keys: TEST_KEYS },
  );
  await vi.waitFor(async () => expect((await state()).openings[0]?.trials).toBeGreaterThanOrEqual(4), WAIT);
  const touched = failed.size;
  expect(touched).toBeLessThan(20);
  expect((await state()).openings).toHaveLength(1);
  expect(await runStatus(rig.queues, "run-1")).toMatchObject({ ended: {}, paused: false });
  works = true;
  for (const id of ids) expect((await rig.ended(id)).status).toBe("completed");
  const charged = await Promise.all(ids.map((id) => rig.queues.redis.hget(`{rollcall}:ledger:${id}`, "charged")));
  expect(charged.map(Number).reduce((sum, count) => sum + count)).toBeLessThanOrEqual(3 + 1); // one may fail twice before the third
  expect(await rig.queues.redis.hget("{rollcall}:gate:run-1", "breaker_until")).toBeNull();
});
