// SPDX-License-Identifier: Apache-2.0
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import type { Used } from "../../src/activation/ports.ts";
import type { BudgetState, RunBudget } from "../../src/queue/budget.ts";
import { openBudget, readSpending, type BatchBudget, type BudgetHolder } from "../../src/rollout/budget.ts";
import { coverageOf } from "../../src/rollout/coverage.ts";
import { tempDir } from "../support/temp-dir.ts";

const HOUR = 3_600_000;
const LIMITS: BatchBudget = { max_model_calls: null, max_tokens: 1_000, max_hours: 8 };

/** Notes what it is given, and has used `used`. */
function fleetThatUsed(used: Used): BudgetHolder & { given: { budget: RunBudget; usedAtLeast: Used }[] } {
  const given: { budget: RunBudget; usedAtLeast: Used }[] = [];
  const state: BudgetState = { max_model_calls: null, max_tokens: 1_000, not_after: null, used, spent: null };
  return {
    given,
    setBudget(_runId, budget, usedAtLeast) {
      given.push({ budget, usedAtLeast });
      return Promise.resolve();
    },
    budget: () => Promise.resolve(state),
  };
}

it("the hours of all starts count together, those of one that was killed up to its last look", async () => {
  const path = join(tempDir(), "budget.json");
  let at = 0;
  const open = () => openBudget(path, { runId: "run-1", limits: LIMITS, now: () => at });
  const used = { model_calls: 3, tokens: 400 };

  const first = fleetThatUsed(used);
  const killed = await open();
  at += HOUR / 2;
  await killed.begin(first);
  expect(first.given).toEqual([
    { budget: { max_model_calls: null, max_tokens: 1_000, starts_for_ms: 7.5 * HOUR }, usedAtLeast: { model_calls: 0, tokens: 0 } },
  ]);
  at += 2.5 * HOUR;
  await killed.look(first);

  at += 100 * HOUR; // nobody ran it
  const second = fleetThatUsed({ model_calls: 9, tokens: 1_100 });
  const ended = await open();
  await ended.begin(second);
  expect(second.given).toEqual([{ budget: { max_model_calls: null, max_tokens: 1_000, starts_for_ms: 5 * HOUR }, usedAtLeast: used }]);
  at += 4 * HOUR;
  await ended.look(second);
  expect(await ended.end("max_tokens")).toEqual({ ...LIMITS, used: { model_calls: 9, tokens: 1_100, hours: 7 }, stopped_by: "max_tokens" });

  const third = fleetThatUsed(used);
  const over = await open();
  at += 2 * HOUR;
  await over.begin(third);
  expect(third.given[0]!.budget.starts_for_ms).toBe(0);
  expect(await over.end("not_after")).toMatchObject({ stopped_by: "max_hours", used: { hours: 9 } });
  expect(JSON.parse(readFileSync(path, "utf8"))).toMatchObject({ schema: "rollcall.budget/1", run_id: "run-1", stopped_by: "max_hours" });
});

it("a look that is answered late does not take back what a later one saw", async () => {
  const watch = await openBudget(join(tempDir(), "budget.json"), { runId: "run-1", limits: LIMITS });
  let answerLate = (): void => undefined;
  const late = new Promise<void>((resolve) => (answerLate = resolve));
  const before = fleetThatUsed({ model_calls: 6, tokens: 600 });
  const first = watch.look({ ...before, budget: (runId) => late.then(() => before.budget(runId)) });
  await watch.look(fleetThatUsed({ model_calls: 7, tokens: 700 }));
  answerLate();
  await first;
  expect((await watch.end(null)).used).toMatchObject({ model_calls: 7, tokens: 700 });
});

it("a budget.json that is none of ours is refused, not written over", async () => {
  const path = join(tempDir(), "budget.json");
  expect(await readSpending(path)).toBeNull();
  writeFileSync(path, "{}");
  await expect(openBudget(path, { runId: "run-1", limits: LIMITS })).rejects.toMatchObject({ code: "out_foreign" });
  expect(readFileSync(path, "utf8")).toBe("{}");
});

it("a torn budget.json stops nothing where nothing is limited [fault B2]", async () => {
  const path = join(tempDir(), "budget.json");
  writeFileSync(path, "");
  const watch = await openBudget(path, { runId: "run-1", limits: { max_model_calls: null, max_tokens: null, max_hours: null } });
  await watch.end(null);
  expect(await readSpending(path)).toMatchObject({ used: { model_calls: 0, tokens: 0 }, stopped_by: null });
});

it("what a spent budget kept from being started is reconciled under its own name [E17]", () => {
  const recorded = new Map([
    ["a", { status: "completed" as const }],
    ["b", { status: "failed" as const }],
  ]);
  const asked = { runId: "run-1", expected: 4, ids: ["a", "b", "c", "d"] };
  expect(coverageOf(recorded, { ...asked, budgetStopped: true })).toMatchObject({
    completed: 1,
    failed: 1,
    not_started: 2,
    not_started_because: "budget",
    missing: 0,
    reconciled: true,
    complete: false,
    missing_ids: ["c", "d"],
  });
  expect(coverageOf(recorded, { ...asked, budgetStopped: false })).toMatchObject({
    not_started: 0,
    not_started_because: null,
    missing: 2,
    reconciled: true,
  });
});
