// SPDX-License-Identifier: Apache-2.0
import { expect, it, vi } from "vitest";
import { readEndCounts } from "../../src/queue/end-counts.ts";
import { deferred } from "../../src/rollout/waiting.ts";
import { activationOf, completes } from "../queue/rig.ts";
import { failsBefore, startChain } from "../resources/rig.ts";
import { asked, startApiRig, type ApiRig } from "./rig.ts";

const WAIT = { timeout: 60_000, interval: 50 };

async function lines(rig: ApiRig, path: string): Promise<Record<string, unknown>[]> {
  const { body } = await rig.call(path);
  return (body as string).split("\n").flatMap((line) => (line === "" ? [] : [JSON.parse(line) as Record<string, unknown>]));
}

it("a rollout has a state from the beginning, and has ended, for those who wait, follow, count or list, when it is scored: with its reward", async () => {
  const rig = await startApiRig();
  const verifying = deferred<void>();
  const chain = await startChain(
    {
      faultFor: ({ path, nth }) => (path === "/verify" && nth === 0 ? { kind: "hang" } : undefined),
      onAnswered: ({ path }) => path === "/verify" && verifying.resolve(),
    },
    {},
    rig,
  );
  await chain.add(activationOf("act-1"));
  const of = async (what = ""): Promise<unknown> => (await rig.call(`/v1/activations/act-1${what}`)).body;
  expect(await rig.call("/v1/activations/act-1/result")).toMatchObject({
    status: 202,
    body: { state: "waiting", run_id: "run-1", rollout: { state: "waiting", attempt: 0, reward: null } },
  });
  expect((await rig.call("/v1/runs/run-1")).body).toMatchObject({ total: 1, waiting: 0, rollouts: { with_server: 1, waiting: 1 } });
  expect((await rig.call("/v1/runs")).body).toMatchObject({ runs: [{ run_id: "run-1", open: 1, ended: 0 }] });
  expect(await lines(rig, "/v1/runs/run-1/rows?state=waiting")).toMatchObject([
    { state: "waiting", rollout: "waiting", task: "office/act-1" },
  ]);

  const result = rig.call("/v1/activations/act-1/result?wait=120");
  const events = rig.call("/v1/activations/act-1/events");
  const followed = lines(rig, "/v1/runs/run-1/results?follow=true");
  await chain.worker(completes(chain.store));
  const first = chain.steps();
  await verifying.promise;
  await vi.waitFor(async () => expect(await of()).toMatchObject({ state: "committing", rollout: { state: "verifying" } }), WAIT);
  expect((await rig.call("/v1/activations/act-1/result?wait=0.1")).status).toBe(202);
  expect(await of("/story")).toMatchObject({ ending: null, now: { rollout: { state: "verifying" } }, task_id: { task_id: "act-1" } });
  expect((await rig.call("/v1/runs/run-1")).body).toMatchObject({
    total: 1,
    running: 0,
    ended: { completed: 0 },
    rollouts: { with_server: 1, activation: 0, verifying: 1 },
  });
  expect(await lines(rig, "/v1/runs/run-1/results")).toEqual([]);
  expect(await lines(rig, "/v1/runs/run-1/rows")).toEqual([]);
  expect(await lines(rig, "/v1/runs/run-1/rows?state=waiting")).toMatchObject([{ state: "committing", rollout: "verifying", attempt: 0 }]);

  await first.close({ graceMs: 3_000 });
  chain.steps();
  const scored = { status: "completed", reward: 0, verification: { submitted: [] }, rollout: { verified: true, verifications: 1 } };
  expect(await result).toMatchObject({ status: 200, body: scored });
  expect(((await events).body as string).match(/^event: ended$/gm)).toHaveLength(1);
  expect(await followed).toMatchObject([{ activation_id: "act-1", status: "completed", result: scored }]);
  expect(await of()).toMatchObject({ state: "ended", status: "completed", rollout: { state: "ended", reward: 0 } });
  expect(await lines(rig, "/v1/runs/run-1/rows")).toMatchObject([{ status: "completed", reward: 0 }]);
  expect((await rig.call("/v1/runs/run-1")).body).toMatchObject({ total: 1, rollouts: null, ended: { completed: 1 } });
  expect(await of("/story")).toMatchObject({
    ending: { status: "completed" },
    rollout: { reward: 0, verified: true, verification: expect.stringContaining('"submitted": []') as string },
  });

  // Of an activation that is no rollout's nothing says more than before.
  await rig.call("/v1/activations", { body: asked("act-plain") });
  const plain = (await rig.call("/v1/activations/act-plain/result?wait=60")).body as object;
  for (const name of ["reward", "verification", "rollout"]) expect(plain).not.toHaveProperty(name);
  expect((await rig.call("/v1/activations/act-plain")).body).not.toHaveProperty("rollout");
  const [row] = (await lines(rig, "/v1/runs/run-1/rows")).filter(({ activation_id }) => activation_id === "act-plain");
  expect(row).not.toHaveProperty("reward");

  await rig.queues.redis.flushall();
  expect(await of("/result")).toMatchObject(scored);
  expect(await of("/story")).toMatchObject({ now: null, rollout: { reward: 0 } });
});

it("a rollout whose first session failed ends once for its run, though the fleet counts each session; one that waits is cancelled by its id", async () => {
  const rig = await startApiRig();
  const chain = await startChain({}, {}, rig);
  await chain.add(activationOf("act-1"));
  await chain.add(activationOf("act-2"));
  expect((await rig.call("/v1/activations/act-2", { method: "DELETE" })).body).toMatchObject({ state: "waiting", outcome: "asked" });
  await chain.worker(failsBefore(1, chain.store));
  chain.steps();
  const result = await rig.call("/v1/activations/act-2/result?wait=60");
  expect(result).toMatchObject({ status: 200, body: { status: "cancelled", rollout: { verified: false } } });
  expect(result.body).not.toHaveProperty("reward");
  expect((await rig.call("/v1/activations/act-1/result?wait=60")).body).toMatchObject({ status: "completed", generation: 1, reward: 0 });
  const ends = await lines(rig, "/v1/runs/run-1/results?follow=true");
  expect(
    ends.map(({ activation_id, generation, status }) => `${activation_id as string} ${generation as number} ${status as string}`),
  ).toEqual(["act-2 0 cancelled", "act-1 1 completed"]);
  expect(await lines(rig, "/v1/runs/run-1/rows")).toMatchObject([
    { activation_id: "act-2", status: "cancelled", reward: null },
    { activation_id: "act-1", status: "completed", reward: 0, attempts: 1 },
  ]);
  expect((await rig.call("/v1/runs/run-1")).body).toMatchObject({ total: 2, failures: [{ cause_code: "cancelled" }] });
  const counts = await readEndCounts(rig.queues);
  expect(Object.fromEntries(counts.map(({ labels, count }) => [labels.status, count]))).toEqual({ cancelled: 1, completed: 1, failed: 1 });
});
