// SPDX-License-Identifier: Apache-2.0
import { expect, it, vi } from "vitest";
import { rateOf } from "../../src/queue/run-rate.ts";
import { completedOf, completes, runsUntilStopped, type Run } from "../queue/rig.ts";
import { asked, startApiRig, type ApiRig } from "./rig.ts";

interface RunBody {
  total: number;
  waiting: number;
  parked: number;
  delayed: number;
  running: number;
  ended: Record<string, number>;
}

function sumOf({ waiting, parked, delayed, running, ended }: RunBody): number {
  return waiting + parked + delayed + running + Object.values(ended).reduce((sum, count) => sum + count, 0);
}

/** Fails those whose id says so, completes the others. */
function mixed(rig: ApiRig): Run {
  return async ({ activation, generation, ledger }) => {
    const { attempt } = await ledger.takeAttempt();
    const completed = completedOf(activation, generation, attempt);
    const failure = { ...FAILURE, failure_reason: `no ${activation.activation_id}` };
    const fails = activation.activation_id.startsWith("bad") && generation === 0;
    const result = fails ? { ...completed, status: "failed" as const, response: null, failure, cause_class: "grant" as const } : completed;
    return { kind: "ended", ...(await rig.store.commit(result)) };
  };
}
const FAILURE = {
  failure_kind: "agent_run_error" as const,
  cause_code: "mcp_server_unreachable" as const,
  server_names: ["office"],
  stage: "agent" as const,
  terminal: false,
  status_code: 502,
};

function linesOf(text: string): { cursor: string; activation_id: string; status: string; result: { status: string } | null }[] {
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as ReturnType<typeof linesOf>[number]);
}

it("a run's counts add up at every look while it runs", async () => {
  const rig = await startApiRig();
  await rig.sentinel();
  const ids = Array.from({ length: 24 }, (_, index) => `a${index}`);
  await rig.call("/v1/activations", { body: ids.map((id) => asked(id)) });
  await rig.worker(completes(rig.store), { concurrency: 4 });
  const looks: RunBody[] = [];
  await vi.waitFor(
    async () => {
      const { body } = await rig.call("/v1/runs/run-1");
      looks.push(body as RunBody);
      expect(body, JSON.stringify(body)).toMatchObject({ ended: { completed: 24 } });
    },
    { timeout: 50_000, interval: 50 },
  );
  for (const look of looks) expect([look.total, sumOf(look)]).toEqual([24, 24]);
  expect(looks.length).toBeGreaterThan(3);
  expect((await rig.call("/v1/runs/run-1")).body).toMatchObject({ eta_seconds: 0, paused: null });
});

it("failures are grouped by their cause, each with the words of one; retried ones leave the group", async () => {
  const rig = await startApiRig();
  await rig.sentinel();
  await rig.call("/v1/activations", { body: ["bad1", "bad2", "good"].map((id) => asked(id)) });
  await rig.worker(mixed(rig));
  for (const id of ["bad1", "bad2", "good"]) await rig.ended(id);
  const { body } = await rig.call("/v1/runs/run-1");
  expect(body).toMatchObject({
    total: 3,
    ended: { completed: 1, failed: 2 },
    failures: [{ failure_kind: "agent_run_error", cause_code: "mcp_server_unreachable", count: 2 }],
  });
  const { activation_id, failure_reason } = body.failures[0].example as { activation_id: string; failure_reason: string };
  expect(failure_reason).toBe(`no ${activation_id}`);

  expect((await rig.call("/v1/runs/run-1/retry", { method: "POST" })).body).toEqual({
    run_id: "run-1",
    queued_again: 2,
    impossible: { secrets_deleted: 0, job_removed: 0 },
  });
  for (const id of ["bad1", "bad2"]) expect(await rig.ended(id, 1)).toMatchObject({ status: "completed" });
  expect((await rig.call("/v1/runs/run-1")).body).toMatchObject({ total: 3, ended: { completed: 3, failed: 0 }, failures: [] });
});

it("rows that could not be queued are counted as refused, explained like other ends, and run once they are right [fault D8]", async () => {
  const rig = await startApiRig();
  await rig.sentinel();
  await rig.call("/v1/activations", { body: asked("good") });
  const refused = ["bad", "good"].map((id) => ({
    activation_id: id,
    rollout_id: id,
    task_id: { taskset: "office", task_id: id },
    cause_code: "input_empty",
    failure_reason: "line 2: input: the user's text is empty",
  }));
  // What is in the queue stays there.
  expect(await rig.call("/v1/runs/run-1/refused", { body: { refused } })).toMatchObject({ status: 200, body: { recorded: 1 } });
  await rig.call("/v1/runs/run-1/refused", { body: { refused } });
  expect((await rig.call("/v1/runs/run-1")).body).toMatchObject({
    total: 2,
    waiting: 1,
    ended: { refused: 1, failed: 0 },
    failures: [{ cause_code: "input_empty", count: 1, example: { failure_reason: "line 2: input: the user's text is empty" } }],
  });
  expect(await rig.call("/v1/activations/bad/story")).toMatchObject({ status: 200, body: { ending: { status: "refused" } } });
  expect(await rig.call("/v1/activations/bad/result")).toMatchObject({ status: 200, body: { status: "refused" } });

  await rig.worker(completes(rig.store));
  await rig.call("/v1/activations?again=true", { body: asked("bad") });
  expect(await rig.ended("bad", 1)).toMatchObject({ status: "completed" });
  expect((await rig.call("/v1/runs/run-1")).body).toMatchObject({ total: 2, ended: { refused: 0, completed: 2 }, failures: [] });
});

it("results come as lines, go on from a cursor, and with follow until all have ended", async () => {
  const rig = await startApiRig();
  await rig.sentinel();
  await rig.call("/v1/activations", { body: ["a", "b", "c"].map((id) => asked(id)) });
  const following = rig.call("/v1/runs/run-1/results?follow=true");
  await rig.worker(completes(rig.store));
  const all = linesOf((await following).body as string);
  expect(all.map(({ activation_id }) => activation_id).toSorted()).toEqual(["a", "b", "c"]);
  for (const line of all)
    expect(line).toMatchObject({ status: "completed", result: { status: "completed", activation_id: line.activation_id } });

  const first = await rig.call("/v1/runs/run-1/results?limit=2");
  expect(first.headers.get("content-type")).toBe("application/x-ndjson");
  const two = linesOf(first.body as string);
  expect(two).toEqual(all.slice(0, 2));
  expect(linesOf((await rig.call(`/v1/runs/run-1/results?cursor=${two[1]!.cursor}`)).body as string)).toEqual(all.slice(2));
});

it("a paused run starts nothing until it is resumed, and says who paused it", async () => {
  const rig = await startApiRig();
  await rig.sentinel();
  await rig.call("/v1/activations", { body: asked("a") });
  expect((await rig.call("/v1/runs/run-1/pause?reason=look", { method: "POST" })).body).toMatchObject({ paused: true, changed: true });
  await rig.worker(completes(rig.store));
  await vi.waitFor(
    async () => expect((await rig.call("/v1/runs/run-1")).body).toMatchObject({ parked: 1, paused: { by: "default", reason: "look" } }),
    {
      timeout: 20_000,
    },
  );
  expect((await rig.call("/v1/runs/run-1/resume", { method: "POST" })).body).toMatchObject({ paused: false, changed: true });
  await rig.ended("a");
});

it("cancelling a run ends all of it; runs that are not known are 404", async () => {
  const rig = await startApiRig();
  await rig.sentinel();
  await rig.call("/v1/activations", { body: ["a", "b", "c"].map((id) => asked(id)) });
  expect((await rig.call("/v1/runs/run-1", { method: "DELETE" })).body).toEqual({ run_id: "run-1", found: { waiting: 3 } });
  for (const id of ["a", "b", "c"]) expect(await rig.ended(id)).toMatchObject({ status: "cancelled" });
  for (const [method, path] of [
    ["GET", ""],
    ["GET", "/results"],
    ["DELETE", ""],
    ["POST", "/pause"],
    ["POST", "/resume"],
    ["POST", "/retry"],
  ] as const)
    expect(await rig.call(`/v1/runs/never${path}`, { method })).toMatchObject({ status: 404, body: { code: "run_unknown" } });
});

it("many are looked at and cancelled in one request, each answered for itself [D12]", async () => {
  const rig = await startApiRig();
  await rig.sentinel();
  await rig.call("/v1/activations", { body: ["a", "b"].map((id) => asked(id)) });
  let started = false;
  await rig.worker(
    runsUntilStopped(() => (started = true)),
    { concurrency: 1 },
  );
  await vi.waitFor(() => expect(started).toBe(true), { timeout: 20_000 });
  const ids = ["a", "b", "never", "wait", "events"];
  const states = await rig.call("/v1/activations/state", { body: { activation_ids: ids } });
  expect(states.body.activations.map(({ activation_id }: { activation_id: string }) => activation_id)).toEqual(ids);
  expect(states.body.activations.map(({ state }: { state: string }) => state).slice(2)).toEqual(["unknown", "unknown", "unknown"]);
  const cancelled = await rig.call("/v1/activations/cancel", { body: { activation_ids: ids, reason: "enough" } });
  expect(cancelled.body.activations.map(({ outcome }: { outcome: string }) => outcome).toSorted()).toEqual(
    ["asked", "done", "impossible", "impossible", "impossible"].toSorted(),
  );
  for (const id of ["a", "b"]) expect(await rig.ended(id)).toMatchObject({ status: "cancelled" });
  for (const body of [
    { activation_ids: [] },
    { activation_ids: Array.from({ length: 1_001 }, (_, index) => `a${index}`) },
    { ids: ["a"] },
    [],
  ])
    expect((await rig.call("/v1/activations/state", { body })).status).toBe(422);
});

it("where every sandbox fails the run holds itself back, says why, and goes on when it is resumed [E7]", async () => {
  const rig = await startApiRig({ settings: { breaker_after: 3, breaker_base_ms: 600_000, breaker_max_ms: 600_000 } });
  await rig.sentinel();
  const ids = Array.from({ length: 220 }, (_, index) => `a${index}`);
  await rig.call("/v1/activations", { body: ids.map((id) => asked(id, { max_attempts: 1 })) });
  let broken = true;
  const cause = {
    cause_class: "infrastructure",
    failure_kind: "transport_local_resource",
    cause_code: "sandbox_failed",
    answered: false,
    reason: "no room",
  } as const;
  await rig.worker(async ({ activation, generation, ledger }) => {
    const { attempt } = await ledger.takeAttempt();
    await ledger.tell(broken ? { kind: "bad", cause } : { kind: "good" });
    const completed = completedOf(activation, generation, attempt);
    const failure = { ...FAILURE, failure_kind: cause.failure_kind, cause_code: cause.cause_code, failure_reason: "no room" };
    const result = broken
      ? { ...completed, status: "failed" as const, response: null, failure, cause_class: "infrastructure" as const }
      : completed;
    return { kind: "ended", ...(await rig.store.commit(result)) };
  });
  await vi.waitFor(
    async () => {
      const { body } = await rig.call("/v1/runs/run-1");
      expect(body).toMatchObject({ breaker: { cause_code: "sandbox_failed", reason: "no room" } });
      expect(body.parked + body.waiting).toBeGreaterThan(200);
      expect(body.failures).toMatchObject([{ cause_code: "sandbox_failed", count: body.ended.failed as number }]);
      expect(sumOf(body as RunBody)).toBe(220);
    },
    { timeout: 60_000, interval: 200 },
  );
  broken = false;
  await rig.call("/v1/runs/run-1/resume", { method: "POST" });
  await vi.waitFor(
    async () => {
      const { body } = await rig.call("/v1/runs/run-1");
      expect(body.breaker).toBeNull();
      expect(body.ended.completed).toBeGreaterThan(10);
    },
    { timeout: 60_000, interval: 200 },
  );
});

it("an id that the queue needs for itself is refused, and looking for one finds nothing", async () => {
  const rig = await startApiRig();
  for (const id of ["wait", "events", "meta", "completed"]) {
    expect(await rig.call("/v1/activations", { body: asked(id) })).toMatchObject({
      status: 422,
      body: { errors: [{ path: "activation_id" }] },
    });
    expect((await rig.call(`/v1/activations/${id}`)).status).toBe(404);
  }
});

it("the rate is that of the last ten minutes", () => {
  const minute = 60_000;
  const now = 100 * minute;
  const ends = [now, now - minute, now - 2 * minute, now - 50 * minute];
  expect(rateOf(ends, { now, left: 3 })).toEqual({ ended_per_minute: 1, eta_seconds: 180 });
  expect(rateOf([now], { now, left: 3 })).toEqual({ ended_per_minute: null, eta_seconds: null });
  expect(rateOf([], { now, left: 0 })).toEqual({ ended_per_minute: null, eta_seconds: 0 });
});
