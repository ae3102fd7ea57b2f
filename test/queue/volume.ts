// SPDX-License-Identifier: Apache-2.0
import { fileURLToPath } from "node:url";
import { Worker } from "bullmq";
import { expect, vi } from "vitest";
import { runActivation } from "../../src/activation/run.ts";
import type { CodexBinary } from "../../src/codex/binary.ts";
import type { ActivationResult } from "../../src/contract/result.ts";
import { wholeResult } from "../../src/queue/deliver.ts";
import { enqueueActivations } from "../../src/queue/enqueue.ts";
import { keys, PREFIX } from "../../src/queue/names.ts";
import { redisOptions } from "../../src/redis/connect.ts";
import { attemptRunner } from "../support/attempt.ts";
import { activationOf, TEST_KEYS, type Rig } from "./rig.ts";
import { profileFor } from "../../src/codex/profile.ts";

const FAKES = fileURLToPath(new URL("../support/fake-codex", import.meta.url));
/** A small real executable that tells of a command with 1 MB of output. */
const LOUD: CodexBinary = {
  version: "0.144.4",
  profile: profileFor("0.144.4"),
  key: "fake-prints-much",
  hostDir: FAKES,
  entry: "prints-much",
  only: ["prints-much"],
  tools: null,
  bwrap: null,
};

export interface Volume {
  /** Of all keys, in bytes, after each `every` activations, once all before had ended and their jobs had left. */
  memory: number[];
  /** The largest of all jobs' hashes that Redis ever held when it was looked at, in bytes of memory. */
  largestJob: { key: string; bytes: number };
  longestStream: { key: string; entries: number };
  delivered: number;
}

/** Runs `count` activations with 1 MB of output each, by the real straight line, to a consumer that reads the first results whole. */
export async function runVolume(rig: Rig, dir: string, { count, every }: { count: number; every: number }): Promise<Volume> {
  const runner = await attemptRunner(dir, LOUD, { store: rig.store, defaultProvider: "host" });
  await rig.sentinel();
  await rig.worker((claim) => runActivation(claim, runner.ports), { concurrency: 4 });
  const { settings, target, redis } = rig.queues;
  const keep = { age: Math.ceil(settings.keep_ended_ms / 1_000) };
  const volume: Volume = { memory: [], largestJob: { key: "", bytes: 0 }, longestStream: { key: "", entries: 0 }, delivered: 0 };
  const consume = async ({ data }: { data: ActivationResult }): Promise<void> => {
    expect(data).toMatchObject({ status: "completed", response: null });
    expect(data.body?.bytes).toBeGreaterThan(100_000);
    if (volume.delivered < 20) expect((await wholeResult(rig.store, data)).response?.output).toHaveLength(3);
    volume.delivered++;
  };
  const consumer = new Worker<ActivationResult>("results", consume, {
    connection: redisOptions(target, "blocking"),
    prefix: PREFIX,
    concurrency: 4,
    removeOnComplete: keep,
  });
  const failures: Error[] = [];
  consumer.on("failed", (_job, error) => failures.push(error));
  try {
    for (let done = 0; done < count; done += every) {
      const ids = Array.from({ length: every }, (_, index) => `act-${done + index}`);
      await enqueueActivations(
        rig.queues,
        ids.map((id) => activationOf(id, { reply_to: "results" })),
        { keys: TEST_KEYS },
      );
      await vi.waitFor(() => expect(failures.length > 0 || volume.delivered === done + every, `${volume.delivered}`).toBe(true), {
        timeout: 3_600_000,
        interval: 100,
      });
      expect(failures).toEqual([]);
      await vi.waitFor(async () => expect(await redis.scard(keys.pending("run-1"))).toBe(0), { timeout: 60_000, interval: 50 });
      await jobsLeave(rig, done + every);
      await lookAtRedis(rig, volume);
    }
    return volume;
  } finally {
    await consumer.close(true);
  }
}

/** What remains when jobs have left: lists of the run, streams, locks, and those that just ended. */
const FEW_KEYS = 100;

/** Ended jobs leave when another one ends: some do, of a run of their own, until those before are gone. */
async function jobsLeave({ queues }: Rig, done: number): Promise<void> {
  let others = 0;
  await vi.waitFor(
    async () => {
      const other = activationOf(`other-${done}-${others++}`, { run_id: "run-2", reply_to: null });
      await enqueueActivations(queues, [other], { keys: TEST_KEYS });
      await vi.waitFor(async () => expect(await queues.redis.scard(keys.pending("run-2"))).toBe(0), { timeout: 60_000, interval: 50 });
      expect(await queues.redis.dbsize()).toBeLessThan(FEW_KEYS);
    },
    { timeout: 300_000, interval: 500 },
  );
}

async function lookAtRedis({ queues: { redis } }: Rig, volume: Volume): Promise<void> {
  let cursor = "0";
  let all = 0;
  do {
    const [next, names] = await redis.scan(cursor, "MATCH", `${PREFIX}:*`, "COUNT", 500);
    cursor = next;
    for (const key of names) {
      const type = await redis.type(key);
      const bytes = (await redis.memory("USAGE", key, "SAMPLES", 0)) ?? 0;
      if (!/:other-|run-2/.test(key)) all += bytes;
      const isJob = type === "hash" && /:(activations|final|results):[^:]+$/.test(key);
      if (isJob && bytes > volume.largestJob.bytes) volume.largestJob = { key, bytes };
      const entries = type === "stream" ? await redis.xlen(key) : 0;
      if (entries > volume.longestStream.entries) volume.longestStream = { key, entries };
    }
  } while (cursor !== "0");
  volume.memory.push(all);
}
