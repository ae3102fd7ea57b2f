// SPDX-License-Identifier: Apache-2.0
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { cancelActivation } from "../../src/queue/cancel.ts";
import { enqueueActivations } from "../../src/queue/enqueue.ts";
import { followRun } from "../../src/queue/ended.ts";
import { runStatus } from "../../src/queue/run-status.ts";
import { attemptOf } from "../support/result-documents.ts";
import { activationOf, completedOf, completes, startRig, TEST_KEYS, type Rig } from "./rig.ts";

let rig: Rig;
beforeEach(async () => {
  rig = await startRig();
});
afterEach(() => rig.close());

it("runs an activation once and records its end once, with its secrets gone from the queue [R1]", async () => {
  const activation = activationOf("act-one", {
    tool_grants: [
      {
        type: "mcp",
        name: "office",
        required: true,
        connection: { transport: "streamable_http", url: "http://127.0.0.1:1/", headers: { A: "tok" } },
      },
    ],
  });
  const seen: string[] = [];
  await rig.sentinel();
  await rig.worker(async (claim) => {
    seen.push(JSON.stringify(claim.activation.tool_grants));
    return completes(rig.store)(claim);
  });
  expect(await enqueueActivations(rig.queues, [activation], { keys: TEST_KEYS })).toEqual([{ activation_id: "act-one", outcome: "added" }]);
  expect(await rig.ended("act-one")).toMatchObject({ status: "completed", episode_id: { attempt: 0 } });
  expect(seen).toEqual([JSON.stringify(activation.tool_grants)]);

  const child = await rig.queues.activations.getJob("act-one");
  expect(JSON.stringify(child!.data)).toContain('"digest"');
  expect(JSON.stringify(child!.data)).not.toContain("ciphertext");
  expect(await runStatus(rig.queues, "run-1")).toMatchObject({ waiting: 0, running: 0, ended: { completed: 1 } });
});

it("accounts for every activation exactly once, however its job is left [D5 R45]", async () => {
  const kinds = ["success", "fault", "retry", "cancelled", "removed"] as const;
  const ids = Array.from({ length: 220 }, (_, index) => `act-${kinds[index % kinds.length]}-${index}`);
  const all = ids.map((id) => activationOf(id, { max_attempts: 2, reply_to: "results" }));
  await enqueueActivations(rig.queues, all, { keys: TEST_KEYS });
  for (const id of ids) {
    if (id.includes("cancelled")) await cancelActivation(rig.queues, id, { by: "test", at: new Date().toISOString(), reason: "" });
    if (id.includes("removed")) await (await rig.queues.activations.getJob(id))!.remove();
  }
  await rig.sentinel();
  await rig.worker(
    async (claim) => {
      const { activation, generation, ledger } = claim;
      const { attempt } = await ledger.takeAttempt();
      if (activation.activation_id.includes("fault")) throw new Error("planted");
      if (activation.activation_id.includes("retry") && attempt === 0) return { kind: "retry", attempt: attemptOf(0) };
      return { kind: "ended", ...(await rig.store.commit(completedOf(activation, generation, attempt))) };
    },
    { concurrency: 20 },
  );

  const stop = new AbortController();
  const ended = new Map<string, string>();
  for await (const { activation_id, status } of followRun(rig.queues, "run-1", { signal: stop.signal })) {
    expect(ended.has(activation_id)).toBe(false);
    ended.set(activation_id, status);
    if (ended.size === ids.length) stop.abort();
  }
  const expected = { success: "completed", fault: "failed", retry: "completed", cancelled: "cancelled", removed: "cancelled" };
  for (const [id, status] of ended) expect([id, status]).toEqual([id, expected[id.split("-")[1] as keyof typeof expected]]);
  expect((await rig.store.readCommit("act-retry-2"))!.episode_id.attempt).toBe(1);
  expect(await rig.queues.results("results").getJobCountByTypes("waiting")).toBe(220);
  expect(await runStatus(rig.queues, "run-1")).toMatchObject({
    waiting: 0,
    running: 0,
    parked: 0,
    delayed: 0,
    ended: { completed: 88, failed: 44, cancelled: 88 },
  });
});

it("ends an activation whose claims were lost too often as session_lost [D5]", async () => {
  await rig.close();
  rig = await startRig({ max_stalled_count: 0 });
  await enqueueActivations(rig.queues, [activationOf("act-lost")], { keys: TEST_KEYS });
  await rig.sentinel();
  // A claim whose worker died: active, and its lock runs out.
  await rig.queues.redis.set("{rollcall}:activations:act-lost:lock", "dead", "PX", 100);
  await rig.queues.redis.zrem("{rollcall}:activations:prioritized", "act-lost");
  await rig.queues.redis.lpush("{rollcall}:activations:active", "act-lost");
  await rig.worker(completes(rig.store));
  expect(await rig.ended("act-lost")).toMatchObject({ status: "failed", failure: { failure_kind: "session_lost" }, attempts: [] });
});

it("delivers the result as an ordinary job named like the activation, and not at all without a reply_to", async () => {
  const metadata = { trace: "é" };
  await rig.sentinel();
  await rig.worker(completes(rig.store));
  await enqueueActivations(rig.queues, [activationOf("act-asked", { reply_to: "results.mine", metadata }), activationOf("act-quiet")], {
    keys: TEST_KEYS,
  });
  const result = await rig.ended("act-asked");
  await rig.ended("act-quiet");
  const job = await rig.queues.results("results.mine").getJob("act-asked");
  expect(job!.data).toEqual(result);
  expect(job!.data.metadata).toEqual(metadata);
  expect(await rig.queues.results("results").getJobCounts("waiting")).toEqual({ waiting: 0 });
});

it("records an end again from the first step when a process died in between, and delivers once", async () => {
  await rig.worker(completes(rig.store));
  await enqueueActivations(rig.queues, [activationOf("act-twice", { reply_to: "results" })], { keys: TEST_KEYS });
  await vi.waitFor(async () => expect(await rig.store.readCommit("act-twice")).not.toBeNull(), { timeout: 20_000 });
  // As if a sentinel had delivered and died before anything else.
  await rig.queues.results("results").add("result", (await rig.store.readCommit("act-twice"))!, { jobId: "act-twice" });
  await rig.sentinel();
  await rig.ended("act-twice");
  expect(await rig.queues.results("results").getJobCounts("waiting")).toEqual({ waiting: 1 });
});
