// SPDX-License-Identifier: Apache-2.0
import { afterAll, beforeAll, expect, it } from "vitest";
import { openActivation } from "../../src/activation/seal.ts";
import { parseSecretKeys, type SecretKeys } from "../../src/activation/secret-keys.ts";
import { withDerivedIds } from "../../src/contract/derive.ts";
import { enqueueAgain } from "../../src/queue/enqueue-again.ts";
import { enqueueActivations } from "../../src/queue/enqueue.ts";
import { activationOf, completes, startRig, TEST_KEYS, type Rig } from "./rig.ts";

let rig: Rig;
beforeAll(async () => {
  rig = await startRig({ max_job_bytes: 100_000 });
});
afterAll(() => rig.close());

const keys = TEST_KEYS;
const withHeader = (id: string, value: string, more = {}) =>
  activationOf(id, {
    tool_grants: [
      {
        type: "mcp",
        name: "s",
        required: false,
        connection: { transport: "streamable_http", url: "http://127.0.0.1/", headers: { H: value } },
      },
    ],
    ...more,
  });
const outcomes = async (...args: Parameters<typeof enqueueActivations>): Promise<string[]> =>
  (await enqueueActivations(...args)).map(({ outcome }) => outcome);

it("joins the same content, in one batch or later, whatever its trace", async () => {
  const first = withHeader("act-same", "token-1");
  const later = withHeader("act-same", "token-1", { traceparent: `00-${"1".repeat(32)}-${"2".repeat(16)}-01` });
  expect(await outcomes(rig.queues, [first, first], { keys })).toEqual(["added", "joined"]);
  expect(await outcomes(rig.queues, [later], { keys })).toEqual(["joined"]);
  expect(await rig.queues.activations.getJobCountByTypes("prioritized")).toBe(1);
});

it("answers other content under the same id with the fields that differ, and changes nothing", async () => {
  await enqueueActivations(rig.queues, [withHeader("act-other", "token-1")], { keys });
  const before = await rig.queues.activations.getJob("act-other");
  const other = withHeader("act-other", "token-2", { input: "else", max_attempts: 1 });
  const [answer] = await enqueueActivations(rig.queues, [other], { keys });
  expect(answer).toMatchObject({ outcome: "conflict" });
  expect([...answer!.fields!].sort()).toEqual(["input", "max_attempts"]);
  expect((await rig.queues.activations.getJob("act-other"))!.data).toEqual(before!.data);
});

it("lets one of two producers with other content win, and tells the other", async () => {
  const answers = await Promise.all(
    [1, 2, 3].map((n) => outcomes(rig.open(), [activationOf("act-race", { input: `input ${n}` })], { keys })),
  );
  expect(answers.flat().sort()).toEqual(["added", "conflict", "conflict"]);
});

it("knows the same content again after the keys were rotated", async () => {
  await enqueueActivations(rig.queues, [withHeader("act-rotated", "token-1")], { keys });
  const rotated = parseSecretKeys([Buffer.alloc(32, 9), Buffer.alloc(32, 7)].map((key) => key.toString("base64")).join(","));
  expect(await outcomes(rig.queues, [withHeader("act-rotated", "token-1")], { keys: rotated })).toEqual(["joined"]);
});

it("joins with new values of secrets, which a job that has not ended is run with [fault B8]", async () => {
  const dataOf = async () => (await rig.queues.activations.getJob("act-renewed"))!.data;
  const headerIn = async (keys: SecretKeys): Promise<unknown> => openActivation((await dataOf()).activation, keys)["tool_grants"];
  await enqueueActivations(rig.queues, [withHeader("act-renewed", "token-1")], { keys });
  const before = await dataOf();
  expect(await outcomes(rig.queues, [withHeader("act-renewed", "token-1")], { keys })).toEqual(["joined"]);
  expect(await dataOf()).toEqual(before); // the same seals
  expect(await outcomes(rig.queues, [withHeader("act-renewed", "token-2")], { keys })).toEqual(["joined"]);
  expect(await headerIn(keys)).toMatchObject([{ connection: { headers: { H: "token-2" } } }]);
  expect(await dataOf()).toEqual({ ...before, activation: expect.any(Object) as object });
  expect(await outcomes(rig.queues, [withHeader("act-renewed", "token-2", { input: "else" })], { keys })).toEqual(["conflict"]);
});

it("completes what is missing of an activation when it is added once more", async () => {
  const activation = activationOf("act-half");
  await enqueueActivations(rig.queues, [activation], { keys });
  // As if the parent had never been added.
  await rig.queues.redis.del("{rollcall}:final:f-act-half", "{rollcall}:final:f-act-half:dependencies");
  await rig.queues.redis.zrem("{rollcall}:final:waiting-children", "f-act-half");
  await enqueueActivations(rig.queues, [activation], { keys });
  const parent = await rig.queues.final.getJob("f-act-half");
  expect(await parent!.getDependenciesCount()).toMatchObject({ unprocessed: 1 });
});

it("refuses an activation that is too large for the queue before anything of its batch is added", async () => {
  const batch = [activationOf("act-small"), activationOf("act-large", { input: "x".repeat(100_000) })];
  await expect(enqueueActivations(rig.queues, batch, { keys })).rejects.toMatchObject({
    code: "activation_too_large",
    message: expect.stringMatching(/^act-large is 100\d{3} bytes as JSON \(input 100002, .*; at most \d+ fit/),
  });
  expect(await rig.queues.activations.getJob("act-small")).toBeUndefined();
});

it("gives ended activations a new generation that goes on counting attempts, and joins those that have not ended", async () => {
  const sentinel = await rig.sentinel();
  const activation = activationOf("act-again", { run_id: "run-again" });
  const worker = await rig.worker(completes(rig.store));
  await enqueueActivations(rig.queues, [activation], { keys });
  expect(await rig.ended("act-again")).toMatchObject({ generation: 0, episode_id: { attempt: 0 } });
  expect(await outcomes(rig.queues, [activation], { keys })).toEqual(["ended"]);
  await worker.close({ graceMs: 3_000 });

  const again = () => enqueueAgain(rig.queues, rig.store, [activation], { keys });
  expect(await again()).toEqual([{ activation_id: "act-again", outcome: "added" }]);
  expect(await again()).toEqual([{ activation_id: "act-again", outcome: "joined" }]);
  await rig.worker(completes(rig.store));
  expect(await rig.ended("act-again", 1)).toMatchObject({ generation: 1, episode_id: { attempt: 1 } });
  await sentinel.close({ graceMs: 3_000 });
});

it("takes ids that file systems and BullMQ would not, and brings the original back in the result [E12]", async () => {
  const hostile = ["../../x", "/abs", "a/b", "a\\b", ".", "..", " ", "-rf", "CON", "a:b", "0", "1e3", "x".repeat(300), "\u00e9", "e\u0301"];
  hostile.push("A", "a", "😀", "\u202e", "\0", "x-a1", "__proto__", "constructor", "0:x");
  const activations = hostile.map((task_id) => {
    const { activation_id, ...ids } = withDerivedIds({ task_id: { taset: "", taskset: "office", task_id } }, "run-ids");
    return activationOf(activation_id as string, { ...ids, task_id: { taskset: "office", task_id } });
  });
  expect(new Set(activations.map(({ activation_id }) => activation_id)).size).toBe(hostile.length);
  await rig.sentinel();
  await rig.worker(completes(rig.store));
  await enqueueActivations(rig.queues, activations, { keys });
  for (const { activation_id, task_id } of activations) expect((await rig.ended(activation_id)).task_id).toEqual(task_id);
});
