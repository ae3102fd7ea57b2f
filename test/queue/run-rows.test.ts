// SPDX-License-Identifier: Apache-2.0
import { expect, it, onTestFinished } from "vitest";
import type { ActivationResult } from "../../src/contract/result.ts";
import { cleanEnded } from "../../src/queue/clean.ts";
import { announceEnd } from "../../src/queue/ended.ts";
import { enqueueAgain } from "../../src/queue/enqueue-again.ts";
import { enqueueActivations } from "../../src/queue/enqueue.ts";
import { removeRun } from "../../src/queue/remove-run.ts";
import { listRuns } from "../../src/queue/run-list.ts";
import { keptRow, readRow, rowOf } from "../../src/queue/run-row.ts";
import { rowsAfter, runningRows, waitingRows, type OpenRow } from "../../src/queue/run-rows.ts";
import { pauseRun } from "../../src/queue/pause.ts";
import { attemptOf, resultOf } from "../support/result-documents.ts";
import { activationOf, completes, runsUntilStopped, startRig, TEST_KEYS, type Rig } from "./rig.ts";

async function rigOf(...given: Parameters<typeof startRig>): Promise<Rig> {
  const rig = await startRig(...given);
  onTestFinished(() => rig.close());
  return rig;
}

async function all(pieces: AsyncIterable<OpenRow[]>): Promise<OpenRow[]> {
  const rows = [];
  for await (const piece of pieces) rows.push(...piece);
  return rows;
}

const FAILED = {
  status: "failed",
  cause_class: "infrastructure",
  task_id: { taskset: "office", task_id: "ü".repeat(300) },
  failure: {
    failure_kind: "environment_server_failed",
    cause_code: "mcp_server_unreachable",
    server_names: ["office"],
    stage: "agent",
    failure_reason: "r".repeat(2_000),
    terminal: false,
    status_code: 502,
  },
  worker: { id: "w".repeat(200), host: "h", version: "0.1.0", codex_version: null, sandbox_provider: null },
  timing: { queued_ms: 1_234.56, setup_ms: 2, run_ms: 3, collect_ms: 4 },
  usage: {
    input_tokens: 1,
    output_tokens: 2,
    total_tokens: 3,
    cached_input_tokens: null,
    reasoning_output_tokens: null,
    cache_write_input_tokens: null,
  },
  attempts: [
    attemptOf(0),
    attemptOf(1, {
      grants: [
        { name: "office", required: true },
        { name: "wiki", required: false },
        { name: "mail", required: false },
      ],
      observations: { source: "codex", records: [], gaps: [{ code: "mcp_server_skipped", detail: "wiki" }] },
    }),
  ],
} as const satisfies Partial<ActivationResult>;

it("a row says how its activation ended in few bytes, whatever names there are", () => {
  const failure = { ...FAILED.failure, server_names: [...FAILED.failure.server_names] };
  const last = { ...FAILED.attempts[1], failure };
  const row = rowOf(resultOf("act-1", { ...FAILED, failure, attempts: [FAILED.attempts[0], last] }), { retryable: false });
  expect(row).toMatchObject({ status: "failed", failure_kind: "environment_server_failed", cause_code: "mcp_server_unreachable" });
  expect(row).toMatchObject({ attempts: 2, queued_ms: 1_235, tokens: 3, tool_calls: 0, started_at: "2026-11-29T16:00:00.000Z" });
  expect(row.servers).toEqual({ granted: 1, skipped: 1, unavailable: 1, unknown: 0 });
  expect(row.task).toMatch(/^office\/ü+…$/);
  expect(row.usage).toEqual(FAILED.usage);
  expect(readRow(keptRow(row))).toEqual(row);
  expect(keptRow(row).length).toBeLessThan(400);
  const { usage, ...named } = row; // as an earlier version kept it
  expect(readRow(JSON.stringify({ ...named, ...(usage === null ? {} : { kinds: Object.values(usage) }) }))).toMatchObject(named);
  expect(JSON.stringify(row).length).toBeLessThan(800);
});

it("rows come in the order of the ends, page by page; an end that is recorded twice has one row, and a later generation's is never replaced by an earlier one's", async () => {
  const rig = await rigOf();
  const ids = ["act-1", "act-2", "act-3"];
  await rig.sentinel();
  await rig.worker(completes(rig.store));
  await enqueueActivations(
    rig.queues,
    ids.map((id) => activationOf(id)),
    { keys: TEST_KEYS },
  );
  for (const id of ids) await rig.ended(id);
  const first = await rowsAfter(rig.queues, "run-1", { after: "0", count: 2 });
  expect(first.rows).toHaveLength(2);
  expect(first.last).toBe(first.rows[1]!.cursor);
  const rest = await rowsAfter(rig.queues, "run-1", { after: first.last!, count: 10 });
  expect([...first.rows, ...rest.rows].map(({ activation_id }) => activation_id).toSorted()).toEqual(ids);
  expect(await rowsAfter(rig.queues, "run-1", { after: rest.last!, count: 10 })).toEqual({ rows: [], last: null });

  const earlier = (await rig.store.readCommit("act-1"))!;
  await enqueueAgain(rig.queues, rig.store, [activationOf("act-1")], { keys: TEST_KEYS });
  await rig.ended("act-1", 1);
  await announceEnd(rig.queues, { ...earlier, status: "failed" }); // as by a process that was frozen meanwhile
  const again = (await rowsAfter(rig.queues, "run-1", { after: "0", count: 10 })).rows.filter((row) => row.activation_id === "act-1");
  expect(new Set(again.map(({ generation, status }) => `${generation} ${status}`))).toEqual(new Set(["1 completed"]));
});

it("an activation that was queued again has no row of an end until it has ended again; one that ended before rows were kept has a bare one", async () => {
  const rig = await rigOf();
  await announceEnd(rig.queues, resultOf("act-1"));
  await announceEnd(rig.queues, resultOf("act-2"));
  await rig.queues.redis.hdel("{rollcall}:rows:run-1", "act-2");
  await rig.store.commit(resultOf("act-1"));
  await enqueueAgain(rig.queues, rig.store, [activationOf("act-1")], { keys: TEST_KEYS });
  const { rows } = await rowsAfter(rig.queues, "run-1", { after: "0", count: 10 });
  expect(rows).toMatchObject([{ activation_id: "act-2", status: "completed", task: null, tool_calls: null }]);
});

it("those that have not ended are told with their place, and those that run with their worker, attempt and last event", async () => {
  const rig = await rigOf();
  await rig.worker(
    runsUntilStopped(({ ledger }, attempt) =>
      ledger.progress({ stage: "running", attempt, note: "search (wiki)", counts: { turns: 1, tool_calls: 2, tokens: null } }),
    ),
    { concurrency: 1, facts: { worker_id: "w-1" } },
  );
  const ids = ["act-1", "act-2", "act-3.g2"];
  await enqueueActivations(
    rig.queues,
    ids.map((id) => activationOf(id)),
    { keys: TEST_KEYS },
  );
  const running = await expect
    .poll(async () => all(runningRows(rig.queues, "run-1", 10)), { timeout: 30_000 })
    .toMatchObject([
      { state: "running", attempt: 0, generation: 0, worker: "w-1", last: { note: "search (wiki)", counts: { tool_calls: 2 } } },
    ])
    .then(() => all(runningRows(rig.queues, "run-1", 10)));
  expect(running[0]!.started_at).toMatch(/^\d{4}-/);
  expect(running[0]!.task).toBe(`office/${running[0]!.activation_id}`);
  const waiting = await all(waitingRows(rig.queues, "run-1", 10));
  expect([...waiting, ...running].map(({ activation_id }) => activation_id).toSorted()).toEqual(ids);
  expect(waiting.map(({ state }) => state)).toEqual(["waiting", "waiting"]);
  expect(await all(waitingRows(rig.queues, "run-1", 1))).toHaveLength(1);
});

it("runs are listed, the one that was queued last first, with counts; what is removed or cleaned is in no list, and leaves no key", async () => {
  const rig = await rigOf();
  for (const run_id of ["run-a", "run-b", "run-c"]) {
    await enqueueActivations(rig.queues, [activationOf(`act-${run_id}`, { run_id })], { keys: TEST_KEYS });
    await rig.queues.redis.zadd("{rollcall}:runs", ["run-a", "run-b", "run-c"].indexOf(run_id), run_id); // not within the same ms
  }
  await pauseRun(rig.queues, "run-b", { by: "me", at: new Date().toISOString(), reason: "" });
  await rig.queues.redis.zadd("{rollcall}:runs", 1.5, "run-gone");
  const first = await listRuns(rig.queues, { after: null, count: 2 });
  expect(first.runs.map(({ run_id }) => run_id)).toEqual(["run-c", "run-b"]);
  expect(first.runs[1]).toMatchObject({ paused: true, open: 1, ended: 0, running: 0, held_back: false });
  const rest = await listRuns(rig.queues, { after: first.next, count: 2 });
  expect([rest.runs.map(({ run_id }) => run_id), rest.next]).toEqual([["run-a"], null]);
  expect(await rig.queues.redis.zscore("{rollcall}:runs", "run-gone")).toBeNull();

  await rig.sentinel();
  await rig.worker(completes(rig.store));
  await rig.ended("act-run-a");
  await removeRun(rig.queues, "run-b", { dryRun: false });
  await cleanEnded(rig.queues, { before: Date.now() + 60_000, dryRun: false });
  expect((await listRuns(rig.queues, { after: null, count: 10 })).runs.map(({ run_id }) => run_id)).not.toContain("run-b");
  expect(await rig.queues.redis.keys("*run-a*")).toEqual([]);
});

it("what stays in Redis of an activation that ended is at most 1 KB [fault B13]", async () => {
  const { queues } = await rigOf();
  const usage = {
    input_tokens: 103_030,
    output_tokens: 1_234,
    total_tokens: 104_264,
    cached_input_tokens: 51_000,
    reasoning_output_tokens: 400,
    cache_write_input_tokens: 0,
  };
  const endAll = async (from: number, count: number): Promise<number> => {
    for (let first = from; first < from + count; first += 100)
      await Promise.all(
        Array.from({ length: 100 }, (_, at) => {
          const id = `act-20261201-120000-abcdef12-task-${first + at}`;
          const made = {
            run_id: "run-long",
            task_id: { taskset: "office-tasks", task_id: `task-${first + at}` },
            usage,
            attempts: [attemptOf(0)],
          };
          return announceEnd(queues, resultOf(id, made));
        }),
      );
    return Number(/^used_memory:(\d+)/m.exec(await queues.redis.info("memory"))![1]);
  };
  const before = await endAll(0, 1_000);
  const after = await endAll(1_000, 3_000); // past the doubling of every hash at 2,048
  // Of that KB the lists of the run take so much; the rest is for ledgers and jobs, which leave in their time.
  expect((after - before) / 3_000).toBeLessThan(600);
});
