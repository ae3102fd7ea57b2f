// SPDX-License-Identifier: Apache-2.0
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { Failure } from "../../src/contract/failure.ts";
import { enqueueActivations } from "../../src/queue/enqueue.ts";
import { attemptOf } from "../support/result-documents.ts";
import { activationOf, startRig, stopReason, TEST_KEYS, type Rig, type Run } from "./rig.ts";

let rig: Rig;
beforeEach(async () => {
  rig = await startRig();
});
afterEach(() => rig.close());

const failure: Failure = {
  failure_kind: "provider_unavailable",
  cause_code: "rate_limited",
  server_names: [],
  stage: "agent",
  failure_reason: "429",
  terminal: false,
  status_code: 502,
};

/** Each takes an attempt and ends in a way that gives any other activation another one. */
const ENDS: Record<string, Run> = {
  "an uncharged retry": async ({ ledger }) => {
    await ledger.takeAttempt();
    return { kind: "retry", attempt: attemptOf(3, { charged: false, failure }) };
  },
  "a busy model server": async ({ ledger }) => {
    await ledger.takeAttempt();
    return { kind: "back_off", attempt: attemptOf(3, { charged: false, failure }), wait_ms: 1 };
  },
  "an internal fault": async ({ ledger }) => {
    await ledger.takeAttempt();
    throw new Error("planted");
  },
};

it.each(Object.entries(ENDS))("an activation whose producer owns attempts begins one only, under the seeded number: %s", async (_, run) => {
  const begun: number[] = [];
  const activation = activationOf("act-once", { max_attempts: 1, episode_id: { rollout_id: "r", attempt: 3 } });
  await enqueueActivations(rig.queues, [activation], { keys: TEST_KEYS, singleAttempt: true });
  await rig.sentinel();
  await rig.worker((claim) => {
    const takeAttempt = async (): ReturnType<typeof claim.ledger.takeAttempt> => {
      const taken = await claim.ledger.takeAttempt();
      begun.push(taken.attempt);
      return taken;
    };
    return run({ ...claim, ledger: { ...claim.ledger, takeAttempt } });
  });
  expect(await rig.ended("act-once")).toMatchObject({ status: "failed" });
  expect(begun).toEqual([3]);
});

it("such an activation ends when its worker is stopped, and no other worker begins it again", async () => {
  let begun = 0;
  const run: Run = async ({ ledger, signal }) => {
    await ledger.takeAttempt();
    begun++;
    return { kind: "handed_back", reason: (await stopReason(signal)).kind };
  };
  await enqueueActivations(rig.queues, [activationOf("act-stopped", { max_attempts: 1 })], { keys: TEST_KEYS, singleAttempt: true });
  await rig.sentinel();
  const first = await rig.worker(run);
  await vi.waitFor(() => expect(begun).toBe(1), { timeout: 20_000 });
  await rig.worker(run);
  await first.close({ graceMs: 5_000 });
  expect(await rig.ended("act-stopped")).toMatchObject({ status: "failed", failure: { failure_kind: "session_lost" } });
  expect(begun).toBe(1);
});
