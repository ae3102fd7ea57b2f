// SPDX-License-Identifier: Apache-2.0
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { Used } from "../../src/activation/ports.ts";
import { readBudget, setBudget, type RunBudget } from "../../src/queue/budget.ts";
import { enqueueActivations } from "../../src/queue/enqueue.ts";
import { runStatus } from "../../src/queue/run-status.ts";
import { attemptOf } from "../support/result-documents.ts";
import { activationOf, completes, startRig, TEST_KEYS, type Rig, type Run } from "./rig.ts";

const WAIT = { timeout: 30_000, interval: 50 };
const UNLIMITED: RunBudget = { max_model_calls: null, max_tokens: null, starts_for_ms: null };
const NOTHING: Used = { model_calls: 0, tokens: 0 };
let rig: Rig;
beforeEach(async () => {
  rig = await startRig();
});
afterEach(() => rig.close());

const add = (count: number, facts: Record<string, unknown> = {}) =>
  enqueueActivations(
    rig.queues,
    Array.from({ length: count }, (_, index) => activationOf(`act-${index}`, facts)),
    { keys: TEST_KEYS },
  );

/** Each attempt uses this much, and is noted when it starts. */
function using(used: Used, started: string[]): Run {
  return async (claim) => {
    started.push(claim.activation.activation_id);
    claim.ledger.used(used);
    return completes(rig.store)(claim);
  };
}

const status = () => runStatus(rig.queues, "run-1");

it("a run of 20 whose fifth crosses its tokens starts no sixth; a larger budget runs exactly the other 15 [E17]", async () => {
  const started: string[] = [];
  await setBudget(rig.queues, "run-1", { ...UNLIMITED, max_tokens: 100_000 }, NOTHING);
  await add(20);
  await rig.sentinel();
  await rig.worker(using({ model_calls: 2, tokens: 21_000 }, started), { concurrency: 1 });
  await vi.waitFor(async () => expect(await status()).toMatchObject({ parked: 15, waiting: 0, running: 0, ended: { completed: 5 } }), WAIT);
  expect(started).toHaveLength(5);
  expect((await status()).budget).toEqual({
    max_model_calls: null,
    max_tokens: 100_000,
    not_after: null,
    used: { model_calls: 10, tokens: 105_000 },
    spent: "max_tokens",
  });
  await setBudget(rig.queues, "run-1", { ...UNLIMITED, max_tokens: 1_000_000 }, NOTHING);
  await vi.waitFor(async () => expect(await status()).toMatchObject({ parked: 0, ended: { completed: 20 } }), WAIT);
  expect(new Set(started).size).toBe(20);
  expect(started).toHaveLength(20);
  expect((await readBudget(rig.queues, "run-1")).used).toEqual({ model_calls: 40, tokens: 420_000 });
});

it("what runs when a budget is spent ends, and attempts that fail count too; another one of theirs does not start [E17]", async () => {
  const started: string[] = [];
  let all = (): void => undefined;
  const four = new Promise<void>((resolve) => (all = resolve));
  await setBudget(rig.queues, "run-1", { ...UNLIMITED, max_model_calls: 3 }, NOTHING);
  await add(8, { max_attempts: 3 });
  await rig.worker(
    async (claim) => {
      const { activation_id } = claim.activation;
      if (started.push(activation_id) === 4) all();
      claim.ledger.used({ model_calls: 3, tokens: 5 });
      await four; // so all four begin before the first ends
      if (activation_id !== started[0]) return completes(rig.store)(claim);
      const { attempt } = await claim.ledger.takeAttempt();
      const failed = attemptOf(attempt, { status: "failed", charged: true });
      await rig.store.putAttempt(activation_id, failed);
      return { kind: "retry", attempt: failed };
    },
    { concurrency: 4 },
  );
  await rig.sentinel();
  await vi.waitFor(async () => expect(await status()).toMatchObject({ parked: 5, running: 0, ended: { completed: 3 } }), WAIT);
  expect(started).toHaveLength(4);
  expect((await readBudget(rig.queues, "run-1")).used).toEqual({ model_calls: 12, tokens: 20 });
});

it("after its time nothing starts, and what was used before counts in a Redis that does not know of it", async () => {
  const started: string[] = [];
  await setBudget(rig.queues, "run-1", { ...UNLIMITED, starts_for_ms: 0 }, { model_calls: 7, tokens: 100 });
  await add(2);
  await rig.sentinel();
  await rig.worker(using({ model_calls: 1, tokens: 10 }, started));
  await vi.waitFor(async () => expect(await status()).toMatchObject({ parked: 2, budget: { spent: "not_after" } }), WAIT);
  expect(started).toEqual([]);
  await setBudget(rig.queues, "run-1", { ...UNLIMITED, max_tokens: 100, starts_for_ms: 60_000 }, { model_calls: 0, tokens: 50 });
  expect(await readBudget(rig.queues, "run-1")).toMatchObject({ used: { model_calls: 7, tokens: 100 }, spent: "max_tokens" });
  await setBudget(rig.queues, "run-1", { ...UNLIMITED, max_model_calls: 1_000, starts_for_ms: 60_000 }, NOTHING);
  await vi.waitFor(async () => expect(await status()).toMatchObject({ parked: 0, ended: { completed: 2 }, budget: { spent: null } }), WAIT);
  expect((await readBudget(rig.queues, "run-1")).used).toEqual({ model_calls: 9, tokens: 120 });
});
