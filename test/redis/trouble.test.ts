// SPDX-License-Identifier: Apache-2.0
import type { Redis } from "ioredis";
import { afterAll, beforeAll, expect, it } from "vitest";
import { failureOf } from "../../src/cli/fail.ts";
import { connectRedis } from "../../src/redis/connect.ts";
import { checkRedis } from "../../src/redis/policy.ts";
import { redisTrouble } from "../../src/redis/trouble.ts";
import { startTestRedis, type TestRedis } from "../support/redis.ts";

let server: TestRedis;
let redis: Redis;
beforeAll(async () => {
  server = await startTestRedis();
  redis = connectRedis(server.target, { role: "command", onError: () => undefined });
});
afterAll(async () => {
  redis.disconnect();
  await server.stop();
});

const FAULTS: [kind: string, begin: () => Promise<unknown>, end: () => Promise<unknown>, cause: string][] = [
  ["full", () => redis.config("SET", "maxmemory", 1), () => redis.config("SET", "maxmemory", 0), "Redis is full.*raise maxmemory"],
  ["read_only", () => redis.replicaof("127.0.0.1", 1), () => redis.replicaof("NO", "ONE"), "read-only replica.*REDIS_URL"],
  ["refuses", () => redis.config("SET", "min-replicas-to-write", 1), () => redis.config("SET", "min-replicas-to-write", 0), "NOREPLICAS"],
];

it.each(FAULTS)(
  "a Redis that is %s is named with its cause and what to do, whether a command, a script or a transaction meets it [fault B7]",
  async (kind, begin, end, cause) => {
    await begin();
    try {
      const thrown = await Promise.all(
        [redis.set("a", "1"), redis.eval("return redis.call('SET', KEYS[1], '1')", 1, "a"), redis.multi().set("a", "1").exec()].map(
          (asked) =>
            asked.then(
              () => null,
              (error: unknown) => error,
            ),
        ),
      );
      for (const error of thrown) {
        expect.soft(redisTrouble(error)).toMatchObject({ kind, text: expect.stringMatching(cause) });
        const { text, exitCode } = failureOf(error);
        expect.soft([text, exitCode]).toEqual([expect.stringMatching(`^rollcall: .*${cause}[^]*the same command goes on`), 75]);
        expect.soft(text).not.toContain("internal error");
      }
      await expect(checkRedis(redis, server.target, { allowEviction: false })).rejects.toMatchObject({
        code: "redis_refuses_writes",
        message: expect.stringMatching(cause),
      });
    } finally {
      await end();
    }
  },
);

it("an error that is none of Redis' is not blamed on it", () => {
  expect(redisTrouble(new Error("READONLY file system"))).toBeNull();
  expect(redisTrouble("OOM")).toBeNull();
});
