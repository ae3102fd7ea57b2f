// SPDX-License-Identifier: Apache-2.0
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { Redis } from "ioredis";
import { expect, vi } from "vitest";
import { runActivation } from "../../src/activation/run.ts";
import { enqueueActivations } from "../../src/queue/enqueue.ts";
import type { QueueSettings } from "../../src/queue/settings.ts";
import { redisOptions } from "../../src/redis/connect.ts";
import { attemptRunner } from "../support/attempt.ts";
import type { TestRedis, TestRedisOptions } from "../support/redis.ts";
import { activationOf, SHORT_CLAIMS, startRig, TEST_KEYS } from "./rig.ts";
import { profileFor } from "../../src/codex/profile.ts";

const FAKES = fileURLToPath(new URL("../support/fake-codex", import.meta.url));

/** A way in which Redis does not take down what ends: begins, and then is over. */
export interface Away {
  redis?: TestRedisOptions;
  begin: (redis: TestRedis) => Promise<unknown>;
  end: (redis: TestRedis) => Promise<unknown>;
}

async function asked(redis: TestRedis, use: (client: Redis) => Promise<unknown>): Promise<void> {
  const client = new Redis(redisOptions(redis.target, "command"));
  try {
    await use(client);
  } finally {
    client.disconnect();
  }
}

/** Redis refuses writes after a snapshot that it could not save: here a directory has the file's name. */
async function failSnapshot(client: Redis): Promise<void> {
  await client.config("SET", "save", "3600 1");
  await client.bgsave();
  await vi.waitFor(async () => expect(await client.info("persistence")).toContain("rdb_last_bgsave_status:err"), { timeout: 20_000 });
  await expect(client.set("refused", "1")).rejects.toThrow("MISCONF");
}

export const AWAY: Record<string, Away> = {
  "killed and restarted": { begin: (redis) => redis.kill9(), end: (redis) => redis.restart() },
  "at a port that refuses connections": {
    redis: { tcp: { password: "pw" } },
    begin: (redis) => redis.kill9(),
    end: (redis) => redis.restart(),
  },
  frozen: {
    begin: async (redis) => process.kill(redis.pid, "SIGSTOP"),
    end: async (redis) => process.kill(redis.pid, "SIGCONT"),
  },
  "without memory (OOM)": {
    begin: (redis) => asked(redis, (client) => client.config("SET", "maxmemory", 1)),
    end: (redis) => asked(redis, (client) => client.config("SET", "maxmemory", 0)),
  },
  "read-only (READONLY)": {
    begin: (redis) => asked(redis, (client) => client.replicaof("127.0.0.1", 1)),
    end: (redis) => asked(redis, (client) => client.replicaof("NO", "ONE")),
  },
  "unable to save (MISCONF)": {
    begin: async (redis) => {
      mkdirSync(join(redis.dir, "dump.rdb", "in-the-way"), { recursive: true });
      await asked(redis, failSnapshot);
    },
    end: async (redis) => {
      rmSync(join(redis.dir, "dump.rdb"), { recursive: true, force: true });
      await asked(redis, (client) => client.bgsave());
    },
  },
};

/**
 * A session, of a real straight line and a small program in Codex's place, ends while Redis is away for `awayMs`. Its result
 * must be committed meanwhile, told once afterwards, and nothing must run again, with two workers that could.
 */
export async function endsWhileAway({ redis, begin, end }: Away, awayMs: number, settings: Partial<QueueSettings> = {}): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), "rollcall-away-"));
  const rig = await startRig({ ...SHORT_CLAIMS, ...settings }, redis);
  try {
    const codex = {
      version: "0.144.4",
      profile: profileFor("0.144.4"),
      key: "fake",
      hostDir: FAKES,
      entry: "ends-when-told",
      only: ["ends-when-told"],
      tools: null,
      bwrap: null,
    };
    const { ports } = await attemptRunner(dir, codex, { store: rig.store });
    for (let n = 0; n < 2; n += 1) await rig.worker((claim) => runActivation(claim, ports));
    await rig.sentinel();
    const told = join(dir, "may-end");
    const activation = activationOf("act-a", { input: told, sandbox: { provider: "host" }, reply_to: "results" });
    await enqueueActivations(rig.queues, [activation], { keys: TEST_KEYS });
    const starts = (): string[] => readFileSync(`${told}.starts`, "utf8").trim().split("\n");
    await vi.waitFor(() => expect(starts()).toHaveLength(1), { timeout: 90_000, interval: 50 });

    await begin(rig.redis);
    const away = performance.now();
    writeFileSync(told, "");
    const saved = await vi.waitFor(
      async () => {
        const result = await rig.store.readCommit("act-a");
        expect(result).not.toBeNull();
        return result!;
      },
      { timeout: 60_000, interval: 50 },
    );
    expect(saved).toMatchObject({ status: "completed", attempts: [{ attempt: 0 }] });
    await delay(awayMs - (performance.now() - away));
    await end(rig.redis);

    expect(await rig.ended("act-a", 0, 150_000)).toEqual(saved); // up to a lock and two looks for lost claims
    expect(starts()).toHaveLength(1);
    expect(await rig.queues.results("results").getJobCounts("waiting")).toEqual({ waiting: 1 });
    const [job] = await rig.queues.results("results").getWaiting();
    expect(job).toMatchObject({ id: "act-a", data: { status: "completed" } });
  } finally {
    await end(rig.redis).catch(() => undefined);
    await rig.close();
    rmSync(dir, { recursive: true, force: true });
  }
}
