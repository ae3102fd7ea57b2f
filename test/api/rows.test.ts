// SPDX-License-Identifier: Apache-2.0
import { rmSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import type { Evidence } from "../../src/contract/result.ts";
import { publishProgress } from "../../src/queue/progress.ts";
import { completedOf, completes, runsUntilStopped } from "../queue/rig.ts";
import { attemptOf, resultOf } from "../support/result-documents.ts";
import { asked, startApiRig, type ApiRig } from "./rig.ts";

const queued = async (rig: ApiRig, ...ids: string[]): Promise<void> => {
  expect((await rig.call("/v1/activations", { body: ids.map((id) => asked(id)) })).status).toBe(202);
};
const lines = (text: string): Record<string, unknown>[] =>
  text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Record<string, unknown>);

it("a run's rows are lines with cursors to go on from, compressed where that is asked for; what runs and waits has rows of its own", async () => {
  const rig = await startApiRig();
  await rig.sentinel();
  const worker = await rig.worker(completes(rig.store));
  await queued(rig, "act-1", "act-2", "act-3");
  for (const id of ["act-1", "act-2", "act-3"]) await rig.ended(id);
  await worker.close({ graceMs: 3_000 });

  const page = await rig.call("/v1/runs/run-1/rows?limit=2");
  const rows = lines(page.body);
  expect(rows).toMatchObject([
    { state: "ended", status: "completed", attempts: 0 },
    { state: "ended", status: "completed", worker: "w1" },
  ]);
  const rest = lines((await rig.call(`/v1/runs/run-1/rows?cursor=${rows[1]!["cursor"] as string}`)).body);
  expect([...rows, ...rest].map((row) => String(row["activation_id"])).toSorted()).toEqual(["act-1", "act-2", "act-3"]);
  expect((await rig.call("/v1/runs/run-1/rows", { headers: { "accept-encoding": "gzip" } })).headers.get("content-encoding")).toBe("gzip");
  expect((await rig.call("/v1/runs/none/rows")).body).toMatchObject({ status: 404, code: "run_unknown" });
  expect((await rig.call("/v1/runs/run-1/rows", { key: null })).status).toBe(401);

  await queued(rig, "act-4", "act-5");
  expect(lines((await rig.call("/v1/runs/run-1/rows?state=waiting")).body)).toMatchObject([{ state: "waiting" }, { state: "waiting" }]);
  await rig.worker(runsUntilStopped(() => undefined));
  await expect
    .poll(async () => lines((await rig.call("/v1/runs/run-1/rows?state=running")).body).map((row) => row["attempt"]), { timeout: 30_000 })
    .toEqual([0, 0]);
  const { body: list } = await rig.call("/v1/runs");
  expect(list).toMatchObject({ runs: [{ run_id: "run-1", open: 2, ended: 3, with_failure: 0, running: 2 }], next: null });
  expect((await rig.call("/v1/runs?after=run-1")).body).toEqual({ runs: [], next: null });
});

const tool = (tool_call_id: string, started_at: string) => ({
  kind: "tool_call" as const,
  invocation_id: "r1",
  tool_call_id,
  tool_name: "search",
  server_name: "wiki",
  started_at,
  completed_at: null,
  duration_ms: null,
  timing_source: "artifact" as const,
  status: "incomplete" as const,
  error_type: null,
});

const TOKENS = {
  input_tokens: 500,
  cached_input_tokens: 50,
  cache_write_input_tokens: 7,
  output_tokens: 100,
  reasoning_output_tokens: 20,
};
const USAGE = { ...TOKENS, total_tokens: 600 };

it("a story tells attempts, servers, tool calls in order, the end and the files; while it runs what is over; long after, what the store has", async () => {
  const rig = await startApiRig();
  await rig.sentinel();
  const observations = {
    source: "codex" as const,
    records: [tool("b", "2026-11-29T16:00:02.000Z"), tool("a", "2026-11-29T16:00:01.000Z")],
    gaps: [{ code: "mcp_server_unavailable" as const, detail: JSON.stringify({ server_name: "mail", phase: "connect" }) }],
  };
  const first = attemptOf(0, { grants: [{ name: "wiki", required: true }], observations });
  await rig.store.putAttempt("act-1", first);
  const worker = await rig.worker(async (claim) => {
    const { attempt } = await claim.ledger.takeAttempt();
    await publishProgress(rig.queues, "act-1", { stage: "running", attempt, note: "search (wiki)" });
    if (claim.activation.activation_id === "act-1") return runsUntilStopped(() => undefined)(claim);
    return { kind: "ended", ...(await rig.store.commit(completedOf(claim.activation, claim.generation, attempt))) };
  });
  await queued(rig, "act-1");
  await expect
    .poll(async () => (await rig.call("/v1/activations/act-1/story")).body, { timeout: 30_000 })
    .toMatchObject({
      now: { state: "running", last_event: { note: "search (wiki)" } },
      task_id: { task_id: "act-1" },
      ending: null,
      attempts: [
        {
          attempt: 0,
          servers: [
            { name: "wiki", required: true, state: "granted" },
            { name: "mail", state: "unavailable", detail: "connect" },
          ],
          tool_calls: [{ tool_call_id: "a" }, { tool_call_id: "b" }],
        },
      ],
    });
  await worker.close({ graceMs: 3_000 });

  const calls = Array.from({ length: 600 }, (_, index) => tool(`c${index}`, "2026-11-29T16:00:01.000Z"));
  const long = { ...observations, records: calls, gaps: [{ code: "artifact_skipped" as const, detail: "x".repeat(10_000) }] };
  const model_calls = Array.from({ length: 300 }, () => ({
    thread_id: "t0",
    response_id: null,
    at: null,
    kind: "turn" as const,
    tokens: TOKENS,
  }));
  const threads = Array.from({ length: 60 }, (_, at) => ({
    thread_id: `t${at}`,
    parent_thread_id: at === 0 ? null : "t0",
    agent_path: null,
    model_calls: 5,
    tokens: TOKENS,
    open_model_calls: 0,
  }));
  const evidence = { turn_started: true, threads, model_calls } as unknown as Evidence;
  await rig.store.commit(resultOf("act-old", { attempts: [attemptOf(0, { observations: long, evidence, usage: USAGE })], usage: USAGE }));
  const { body } = await rig.call("/v1/activations/act-old/story");
  expect(body).toMatchObject({
    usage: USAGE,
    attempts: [
      {
        usage: USAGE,
        usage_unknown: false,
        evidence: { threads: { length: 50 }, model_calls: { length: 200 } },
        left_out: { threads: 10, model_calls: 100 },
      },
    ],
  });
  expect(body).toMatchObject({ now: null, ending: { status: "completed" }, attempts: [{ left_out: { tool_calls: 100, gaps: 0 } }] });
  expect(body.attempts[0].gaps[0].detail).toHaveLength(501);
  await rig.worker(completes(rig.store));
  await queued(rig, "act-2");
  await rig.ended("act-2");
  rmSync(join(rig.storeRoot, "act-2"), { recursive: true }); // as an operator does
  expect((await rig.call("/v1/activations/act-2/story")).body).toMatchObject({
    now: { state: "ended", status: "completed" },
    ending: null,
  });
  expect((await rig.call("/v1/activations/act-none/story")).body).toMatchObject({ status: 404, code: "activation_unknown" });
  expect((await rig.call("/v1/activations/wait/story")).status).toBe(404);
});
