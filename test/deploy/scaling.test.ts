// SPDX-License-Identifier: Apache-2.0
import { expect, it, onTestFinished, vi } from "vitest";
import { enqueueActivations } from "../../src/queue/enqueue.ts";
import { activationOf, runsUntilStopped, startRig, TEST_KEYS } from "../queue/rig.ts";
import { manifests } from "./documents.ts";

/** What KEDA's scaler asks of each key: its length, whatever its type. */
const LENGTH = `local commands = { zset = 'ZCARD', list = 'LLEN', none = 'LLEN' }
return redis.call(commands[redis.call('TYPE', KEYS[1]).ok], KEYS[1])`;

it("the keys that workers are scaled by hold every activation that wants one: waiting, running and handed back, but none that ended or is parked", async () => {
  const rig = await startRig();
  onTestFinished(() => rig.close());
  const { triggers } = manifests().find(({ kind }) => kind === "ScaledObject")!.spec;
  const lists = (triggers as { metadata: { listName: string } }[]).map(({ metadata }) => metadata.listName);
  const lengths = async (): Promise<number[]> =>
    Promise.all(lists.map(async (list) => (await rig.queues.redis.eval(LENGTH, 1, list)) as number));

  expect(await lengths()).toEqual([0, 0, 0]);
  await enqueueActivations(
    rig.queues,
    ["a", "b", "c"].map((id) => activationOf(id)),
    { keys: TEST_KEYS },
  );
  expect(await lengths()).toEqual([3, 0, 0]);
  const started: string[] = [];
  const worker = await rig.worker(
    runsUntilStopped(({ activation }) => started.push(activation.activation_id)),
    { concurrency: 2 },
  );
  await vi.waitFor(() => expect(started).toHaveLength(2), { timeout: 60_000 });
  expect(await lengths()).toEqual([1, 0, 2]);
  await worker.close({ graceMs: 10_000 });
  expect(await lengths()).toEqual([3, 0, 0]);
});
