// SPDX-License-Identifier: Apache-2.0
import { expect, it } from "vitest";
import { giveAgain } from "../../src/cli/control-text.ts";
import { activationLines, runLines, type RunFacts } from "../../src/cli/show-status.ts";

const FACTS: RunFacts = {
  status: {
    waiting: 3,
    running: 1,
    parked: 0,
    delayed: 0,
    delayed_for: { model_server: 0, able_worker: 0, next_attempt: 0 },
    with_server: 0,
    next_attempt_in_ms: null,
    ended: { completed: 2 },
    paused: false,
    pause: null,
    limit: null,
    budget: { max_model_calls: null, max_tokens: null, not_after: null, used: { model_calls: 0, tokens: 0 }, spent: null },
  },
  workers: [],
  breaker: { open: null, openings: [] },
  refusing_models: [],
  workers_absent_ms: null,
};

it("status says why a worker takes nothing", () => {
  const worker = {
    worker_id: "w-1",
    host: "h",
    pid: 7,
    providers: [],
    codex_versions: [],
    key_ids: [],
    schema_minor: 0,
    store_id: "s",
    classes: [],
    running: 1,
    lease_ends_in_ms: 60_000,
    held_back: "disk: 1 MB left at /tmp, 1024 wanted",
  };
  const lines = (held_back: string | null): string[] => runLines("run-1", { ...FACTS, workers: [{ ...worker, held_back }] });
  expect(lines(worker.held_back).at(-1)).toMatch(/^ {2}w-1: process 7 on h, 1 running, .*; takes nothing: disk: 1 MB left/);
  expect(lines(null).join("\n")).not.toContain("takes nothing");
});

it("status says what the parked and the delayed wait for, in numbers that add up", () => {
  const delayed_for = { model_server: 4, able_worker: 1, next_attempt: 2 };
  const status = { ...FACTS.status, parked: 5, delayed: 7, delayed_for, next_attempt_in_ms: 40_000 };
  const first = (more: Partial<RunFacts["status"]>): string => runLines("run-1", { ...FACTS, status: { ...status, ...more } })[0]!;
  expect(first({ paused: true })).toBe(
    "run run-1: 2 ended (2 completed), 1 running, 3 waiting, 5 parked (the run is paused), " +
      "7 delayed (4 for the model server, 1 for a worker that can run it, 2 until the next attempt, the first in 40.0 s)",
  );
  expect(first({ limit: 1 })).toContain("5 parked (as many run as may)");
  expect(first({ budget: { ...FACTS.status.budget, spent: "max_tokens" } })).toContain("5 parked (its budget is spent)");
  expect(first({ delayed: 1, delayed_for: { model_server: 0, able_worker: 0, next_attempt: 1 } })).toContain(
    "1 delayed (1 until the next attempt, in 40.0 s)",
  );
});

it("status says since when no worker lives and a model server refuses, and how many wait", () => {
  const refusing_models = [{ server: "http://m:1", since: "2027-01-15T08:31:00.000Z", for_ms: 3_600_000, waiting: 4 }];
  const lines = runLines("run-1", { ...FACTS, refusing_models, workers_absent_ms: 90_000 }).join("\n");
  expect(lines).toContain("no worker lives, for 1 min 30 s at least; 3 wait: start one with `rollcall worker`");
  expect(lines).toContain(
    "model server http://m:1: refusing since 2027-01-15T08:31:00.000Z (1 h 00 min), none served meanwhile; 4 sessions wait",
  );
});

it("status says where a rollout is with its resources server, and its reward when it is over", () => {
  const found = {
    activation_id: "act-1",
    run_id: "run-1",
    generation: 0,
    state: "committing" as const,
    status: null,
    attempt: 1,
    charged: 0,
    worker_id: null,
    due_at: null,
    cancel: null,
  };
  const rollout = {
    state: "verifying" as const,
    attempt: 1,
    failed_attempts: 1,
    failed_tries: 2,
    unreachable_since: "2026-11-29T16:00:00.000Z",
    reward: null,
  };
  expect(activationLines({ ...found, rollout }, null, undefined, null)).toContain(
    "  rollout: its resources server scores it, attempt 1, failed attempts: 1, failed tries: 2, the server is out of reach since 2026-11-29T16:00:00.000Z",
  );
  const over = { ...rollout, state: "ended" as const, failed_attempts: 0, failed_tries: 0, unreachable_since: null };
  const ended = { ...found, state: "ended" as const, status: "completed" as const };
  expect(activationLines({ ...ended, rollout: { ...over, reward: 0.5 } }, null, undefined, null)).toContain("  rollout: over, reward 0.5");
  expect(activationLines({ ...ended, rollout: over }, null, undefined, null)).toContain("  rollout: over, no reward");
  expect(activationLines(found, null, undefined, null).join("\n")).not.toContain("rollout");
});

it.each([
  [{ out: "out", tasks: "/data/my tasks.jsonl", server: undefined }, "rollcall run '/data/my tasks.jsonl' --out out --retry failed"],
  [{ out: "out", tasks: "t.jsonl", server: "http://h:1" }, "rollcall run t.jsonl --out out --server http://h:1 --retry failed"],
  [{ out: undefined, tasks: null, server: "http://h:1" }, "rollcall enqueue TASKS.jsonl --run-id run-1 --server http://h:1 --again failed"],
  [{ out: undefined, tasks: null, server: undefined }, "rollcall enqueue TASKS.jsonl --run-id run-1 --again failed"],
])("what the queue cannot run again is told with the command that can: %o [fault D5]", (from, command) => {
  expect(giveAgain({ run_id: "run-1", ...from })).toContain(command);
});
