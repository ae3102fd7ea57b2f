// SPDX-License-Identifier: Apache-2.0
import { afterEach, expect, test } from "vitest";
import type { Redis } from "ioredis";
import { connectRedis } from "../../src/redis/connect.ts";
import { checkRedis, requireRedisPassword, type RedisCheck } from "../../src/redis/policy.ts";
import { startTestRedis, type TestRedis, type TestRedisOptions } from "../support/redis.ts";

const servers: TestRedis[] = [];
const connections: Redis[] = [];
afterEach(async () => {
  for (const redis of connections.splice(0)) redis.disconnect();
  for (const server of servers.splice(0)) await server.stop();
});

async function start(options: TestRedisOptions): Promise<TestRedis> {
  const server = await startTestRedis(options);
  servers.push(server);
  return server;
}

async function check(options: TestRedisOptions, allowEviction = false): Promise<RedisCheck> {
  const { target } = await start(options);
  const redis = connectRedis(target, { role: "command", onError: () => undefined });
  connections.push(redis);
  return checkRedis(redis, target, { allowEviction });
}

const CONFIG_FORBIDDEN = "--user default on nopass ~* &* +@all -config".split(" ");

test("a durable Redis that never evicts passes without a warning", async () => {
  expect(await check({})).toEqual({
    version: expect.stringMatching(/^\d+\.\d+/),
    eviction_policy: "noeviction",
    append_only: true,
    warnings: [],
  });
});

test.each(["allkeys-lru", "volatile-lru"])("a Redis with %s is refused, with the command that changes it [D8]", async (maxmemoryPolicy) => {
  await expect(check({ maxmemoryPolicy })).rejects.toMatchObject({
    code: "redis_eviction_policy",
    message: expect.stringMatching(
      new RegExp(`${maxmemoryPolicy}.*redis-cli -s /.*redis.sock CONFIG SET maxmemory-policy noeviction.*redis.conf`),
    ),
  });
});

test("an evicting Redis is refused also where CONFIG is forbidden [D8]", async () => {
  await expect(check({ maxmemoryPolicy: "allkeys-lru", args: CONFIG_FORBIDDEN })).rejects.toMatchObject({ code: "redis_eviction_policy" });
  expect(await check({ args: CONFIG_FORBIDDEN })).toMatchObject({ eviction_policy: "noeviction", warnings: [] });
});

test("a Redis that hides its eviction policy is let through with a warning that says how to verify it [D8]", async () => {
  const result = await check({ args: [...CONFIG_FORBIDDEN, "-info"] });
  expect(result).toMatchObject({ eviction_policy: null, append_only: null, version: null });
  expect(result.warnings).toEqual([expect.stringContaining("CONFIG GET maxmemory-policy")]);
});

test("an evicting Redis that is allowed by setting leaves a warning for the record [D8]", async () => {
  const result = await check({ maxmemoryPolicy: "allkeys-lru" }, true);
  expect(result.eviction_policy).toBe("allkeys-lru");
  expect(result.warnings).toEqual([expect.stringContaining("Allowed by setting")]);
});

test("a Redis without an append-only file gives a warning", async () => {
  const result = await check({ appendonly: false });
  expect(result.append_only).toBe(false);
  expect(result.warnings).toEqual([expect.stringContaining("appendonly yes")]);
});

test("the fixing command for a Redis on TCP does not show its password", async () => {
  await expect(check({ maxmemoryPolicy: "allkeys-lru", tcp: { password: "s3cret" } })).rejects.toMatchObject({
    message: expect.not.stringContaining("s3cret"),
  });
});

test("a wrong password is an error, not a Redis that hides its policy", async () => {
  const { target } = await start({ tcp: { password: "right" } });
  if (target.kind !== "url") throw new Error("expected a URL");
  const wrong = { kind: "url" as const, url: target.url.replace(":right@", ":wr0ng-pass@") };
  const redis = connectRedis(wrong, { role: "command", onError: () => undefined });
  connections.push(redis);
  await expect(checkRedis(redis, wrong, { allowEviction: false })).rejects.toMatchObject({
    code: "redis_unreachable",
    message: expect.not.stringContaining("wr0ng-pass"),
  });
});

test("a Redis on TCP that answers without a password is refused, also when the URL carries one", async () => {
  const open = await start({ tcp: {} });
  if (open.target.kind !== "url") throw new Error("expected a URL");
  await expect(requireRedisPassword(open.target)).rejects.toMatchObject({ code: "redis_without_password" });
  const url = open.target.url.replace("redis://", "redis://:useless@");
  await expect(requireRedisPassword({ kind: "url", url })).rejects.toMatchObject({
    code: "redis_without_password",
    message: expect.not.stringContaining("useless"),
  });
});

test("a Redis on TCP that asks for a password, and one on a unix socket, are accepted", async () => {
  await requireRedisPassword((await start({ tcp: { password: "pw" } })).target);
  await requireRedisPassword((await start({})).target);
});

test("a Redis nobody answers for is unreachable, not 'protected'", async () => {
  const server = await start({ tcp: { password: "pw" } });
  await server.kill9();
  await expect(requireRedisPassword(server.target)).rejects.toMatchObject({
    code: "redis_unreachable",
    message: expect.stringMatching(/ECONNREFUSED/),
  });
});
