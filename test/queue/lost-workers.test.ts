// SPDX-License-Identifier: Apache-2.0
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { Worker } from "bullmq";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { resultSchema } from "../../src/contract/result.ts";
import { enqueueActivations } from "../../src/queue/enqueue.ts";
import { redisOptions } from "../../src/redis/connect.ts";
import { activationOf, completes, SHORT_CLAIMS, startRig, TEST_KEYS, type Rig } from "./rig.ts";

const WAIT = { timeout: 40_000, interval: 50 };
const LOST = { status: "failed", failure: { failure_kind: "session_lost", cause_code: "session_lost" }, cause_class: "infrastructure" };
let rig: Rig;
const children: ChildProcess[] = [];
beforeEach(async () => {
  rig = await startRig(SHORT_CLAIMS);
});
afterEach(async () => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
  await rig.close();
});

const add = (facts = {}) => enqueueActivations(rig.queues, [activationOf("act-a", facts)], { keys: TEST_KEYS });
const isLocked = () => rig.queues.redis.exists("{rollcall}:activations:act-a:lock");

/** Starts a worker process, waits until it runs an attempt (which is told), and kills it. */
async function killInMidAttempt(): Promise<string> {
  const { path } = rig.redis.target as { path: string };
  const child = spawn(process.execPath, ["test/support/queue-worker.mjs", path, rig.storeRoot, JSON.stringify(SHORT_CLAIMS)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  children.push(child);
  const [line] = (await Promise.race([
    once(createInterface({ input: child.stdout }), "line"),
    once(child, "exit").then(() => ["the worker process ended before it ran anything"]),
  ])) as [string];
  const ended = once(child, "exit");
  child.kill("SIGKILL");
  await ended;
  return line;
}

it("ends what lost its last attempt with only a sentinel alive, with all attempts and the evidence of the last one", async () => {
  await add({ max_attempts: 2, reply_to: "results" });
  await rig.sentinel();
  expect(await killInMidAttempt()).toBe("act-a 0");
  expect(await killInMidAttempt()).toBe("act-a 1");

  const result = await rig.ended("act-a");
  resultSchema.parse(result);
  expect(result).toMatchObject({ ...LOST, episode_id: { attempt: 1 }, capture_key: "r-act-a-a1" });
  expect(result.failure!.failure_reason).toContain("attempts charged: 2");
  expect(result.attempts.map(({ attempt, charged, worker, failure }) => [attempt, charged, worker.host, failure!.cause_code])).toEqual([
    [0, true, "test", "session_lost"],
    [1, true, "test", "session_lost"],
  ]);
  expect(new Set(result.attempts.map(({ worker }) => worker.id)).size).toBe(2);
  expect(result.artifacts).toMatchObject([{ path: "events.jsonl", bytes: 28, uri: "dir:act-a/attempt-1/events.jsonl" }]);
  expect(await rig.queues.results("results").getJobCounts("waiting")).toEqual({ waiting: 1 });
});

it("gives what lost a worker another attempt where some are left, whose result tells of the lost one", async () => {
  await add({ max_attempts: 2 });
  await rig.sentinel();
  await killInMidAttempt();
  await rig.worker(completes(rig.store));
  expect(await rig.ended("act-a")).toMatchObject({ status: "completed", episode_id: { attempt: 1 } });
});

it("ends it when no process lived meanwhile, as soon as the next one starts", async () => {
  await add({ max_attempts: 1 });
  await killInMidAttempt();
  await vi.waitFor(async () => expect(await isLocked()).toBe(0), WAIT);
  await rig.sentinel();
  expect(await rig.ended("act-a")).toMatchObject({ ...LOST, attempts: [{ attempt: 0, charged: true }] });
});

it("ends it when whoever found the lost claim was killed before it could do more", async () => {
  await add({ max_attempts: 1 });
  await killInMidAttempt();
  const finder = new Worker("activations", null, {
    connection: redisOptions(rig.redis.target, "blocking"),
    prefix: "{rollcall}",
    stalledInterval: 500,
    maxStalledCount: 1_000,
    autorun: false,
  });
  await finder.startStalledCheckTimer();
  await vi.waitFor(async () => expect(await rig.queues.activations.getJobState("act-a")).toBe("waiting"), WAIT);
  await finder.close(true);
  await rig.sentinel();
  await rig.sentinel();
  expect(await rig.ended("act-a")).toMatchObject(LOST);
});
