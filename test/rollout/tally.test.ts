// SPDX-License-Identifier: Apache-2.0
import { join } from "node:path";
import { expect, it, vi } from "vitest";
import { openDirectoryStore } from "../../src/artifacts/directory-store.ts";
import { openBudget } from "../../src/rollout/budget.ts";
import { openResultsFiles } from "../../src/rollout/results-files.ts";
import { makeTally } from "../../src/rollout/tally.ts";
import { directFleet } from "../support/batch-fleet.ts";
import { resultOf } from "../support/result-documents.ts";
import { tempDir } from "../support/temp-dir.ts";

it("says of a result that is just being taken in that there is one: else its activation would be run again", async () => {
  const root = tempDir();
  const store = await openDirectoryStore(join(root, "artifacts"));
  const files = await openResultsFiles({ results: join(root, "results.jsonl"), failures: join(root, "failures.jsonl") });
  await store.commit(resultOf("act-a"));
  const fleet = directFleet(store, () => null);
  const tally = makeTally({
    fleet,
    files,
    runId: "run-1",
    pending: new Set(["act-a"]),
    reporter: { say: () => undefined, ended: () => undefined, breaker: () => undefined, progress: () => undefined },
    total: 1,
    startedAt: performance.now(),
    breaker: { openings: [], open: null },
    onForgotten: () => Promise.resolve(),
    budget: await openBudget(join(root, "budget.json"), {
      runId: "run-1",
      limits: { max_model_calls: null, max_tokens: null, max_hours: null },
    }),
  });
  // The follower of the run and whoever queues the task, which has just ended.
  expect(await Promise.all([tally.takeFromStore("act-a"), tally.takeFromStore("act-a")])).toEqual([true, true]);
  expect(tally.left()).toBe(0);
  await tally.close();
  await files.close();
});

it("says once that tasks wait and no worker lives, after a minute, and again when they were gone once more", async () => {
  const root = tempDir();
  const store = await openDirectoryStore(join(root, "artifacts"));
  const files = await openResultsFiles({ results: join(root, "results.jsonl"), failures: join(root, "failures.jsonl") });
  const absences = [null, 59_000, 60_000, 61_000, null, 75_000];
  const said: string[] = [];
  let looks = 0;
  const tally = makeTally({
    fleet: { ...directFleet(store, () => null), workersAbsentMs: () => Promise.resolve(looks < absences.length ? absences[looks]! : null) },
    files,
    runId: "run-1",
    pending: new Set(["act-a", "act-b"]),
    reporter: { say: (text) => said.push(text), ended: () => undefined, breaker: () => undefined, progress: () => (looks += 1) },
    total: 2,
    startedAt: performance.now(),
    breaker: { openings: [], open: null },
    onForgotten: () => Promise.resolve(),
    budget: await openBudget(join(root, "budget.json"), {
      runId: "run-1",
      limits: { max_model_calls: null, max_tokens: null, max_hours: null },
    }),
  });
  await vi.waitFor(() => expect(looks).toBeGreaterThan(absences.length), { timeout: 30_000 });
  expect(said).toEqual([
    "no worker has lived for 1 min 00 s: 2 tasks wait; start one with `rollcall worker`",
    "no worker has lived for 1 min 15 s: 2 tasks wait; start one with `rollcall worker`",
  ]);
  await tally.close();
  await files.close();
});
