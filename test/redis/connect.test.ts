// SPDX-License-Identifier: Apache-2.0
import { inspect } from "node:util";
import { afterEach, expect, test, vi } from "vitest";
import { Queue, Worker } from "bullmq";
import type { Redis } from "ioredis";
import { connectRedis, describeRedis, redactRedisUrl, redisOptions } from "../../src/redis/connect.ts";
import { startTestRedis, type TestRedis, type TestRedisOptions } from "../support/redis.ts";

const servers: TestRedis[] = [];
const connections: Redis[] = [];
afterEach(async () => {
  for (const redis of connections.splice(0)) redis.disconnect();
  for (const server of servers.splice(0)) await server.stop();
});

async function start(options?: TestRedisOptions): Promise<TestRedis> {
  const server = await startTestRedis(options);
  servers.push(server);
  return server;
}

function connect(...args: Parameters<typeof connectRedis>): Redis {
  const redis = connectRedis(...args);
  connections.push(redis);
  return redis;
}

const ignore = () => undefined;

test("what Redis acknowledged is there after kill -9 of Redis", async () => {
  const server = await start();
  const redis = connect(server.target, { role: "command", onError: ignore });
  for (let n = 0; n < 50; n += 1) await redis.rpush("acknowledged", n);
  await server.kill9();
  await server.restart();
  expect(await redis.llen("acknowledged")).toBe(50);
});

test("a command given while Redis is away for 5 seconds is answered when it is back", async () => {
  const server = await start();
  const onError = vi.fn<(error: Error) => void>();
  const redis = connect(server.target, { role: "command", onError });
  await redis.set("before", "1");
  await server.kill9();
  await vi.waitFor(() => expect(onError).toHaveBeenCalled(), 10_000);
  const answer = redis.get("before");
  const away = Date.now() + 5_000;
  await vi.waitFor(() => expect(Date.now()).toBeGreaterThan(away), { timeout: 10_000, interval: 100 });
  await server.restart();
  expect(await answer).toBe("1");
});

test("BullMQ takes the options, and its worker goes on after Redis was away", async () => {
  const server = await start();
  const { target } = server;
  const queue = new Queue("jobs", { connection: redisOptions(target, "command") });
  const worker = new Worker("jobs", async (job) => job.name, { connection: redisOptions(target, "blocking") });
  const done: string[] = [];
  worker.on("completed", (job) => done.push(job.name));
  queue.on("error", ignore);
  worker.on("error", ignore);
  try {
    await queue.add("first", {});
    await vi.waitFor(() => expect(done).toEqual(["first"]), 20_000);
    await server.kill9();
    await server.restart();
    await queue.add("second", {});
    await vi.waitFor(() => expect(done).toEqual(["first", "second"]), 20_000);
  } finally {
    await worker.close();
    await queue.close();
  }
});

test("a fail-fast connection rejects at once while Redis is away, and works again after", async () => {
  const server = await start();
  const redis = connect(server.target, { role: "fail_fast", onError: ignore });
  await vi.waitFor(() => expect(redis.status).toBe("ready"), 10_000);
  await server.kill9();
  const started = performance.now();
  await expect(redis.ping()).rejects.toThrow();
  expect(performance.now() - started).toBeLessThan(1_000);
  await server.restart();
  await vi.waitFor(async () => expect(await redis.ping()).toBe("PONG"), 10_000);
});

test("a wrong password is reported without the password, however the error is printed", async () => {
  const server = await start({ tcp: { password: "right" } });
  const onError = vi.fn<(error: Error) => void>();
  if (server.target.kind !== "url") throw new Error("expected a URL");
  const url = server.target.url.replace(":right@", ":wr0ng-pass@");
  connect({ kind: "url", url }, { role: "command", onError });
  await vi.waitFor(() => expect(onError).toHaveBeenCalled(), 10_000);
  const printed = onError.mock.calls.map(([error]) => inspect(error, { depth: 9, showHidden: true })).join("\n");
  expect(printed).toMatch(/WRONGPASS/);
  expect(printed).not.toContain("wr0ng-pass");
});

test("a URL is shown without its user, password and query", () => {
  expect(redactRedisUrl("rediss://bob:s3cret@h.example:7000/2?password=s3cret")).toBe("rediss://h.example:7000/2");
  expect(redactRedisUrl("s3cret with spaces")).toBe("(not a URL)");
  expect(describeRedis({ kind: "socket", path: "/run/r.sock" })).toBe("/run/r.sock");
});

test("URL parts become options, percent-decoded", () => {
  expect(redisOptions({ kind: "url", url: "rediss://bob:p%40ss%2F@[::1]:7000/2" }, "blocking")).toMatchObject({
    host: "::1",
    port: 7000,
    db: 2,
    username: "bob",
    password: "p@ss/",
    tls: {},
    maxRetriesPerRequest: null,
  });
  expect(redisOptions({ kind: "url", url: "redis://h" }, "command")).toMatchObject({ host: "h", port: 6379, db: 0 });
});

test.each(["http://h", "redis://", "localhost:6379", "redis://h/notanumber", "redis://:s3cret@h/x"])(
  "the unusable Redis URL %s is refused without showing a password",
  (url) => {
    const attempt = () => redisOptions({ kind: "url", url }, "command");
    expect(attempt).toThrow(expect.objectContaining({ code: "redis_url_invalid" }));
    expect(attempt).toThrow(expect.not.objectContaining({ message: expect.stringContaining("s3cret") }));
  },
);
