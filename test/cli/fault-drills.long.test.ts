// SPDX-License-Identifier: Apache-2.0
import { randomBytes } from "node:crypto";
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { Redis } from "ioredis";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { redisOptions } from "../../src/redis/connect.ts";
import { fakeCommand, type FakeCommand } from "../support/fake-command.ts";
import { startTestRedis, type TestRedis, type TestRedisOptions } from "../support/redis.ts";
import type { RunningCommand } from "../support/rollcall-command.ts";

// What surrounds us fails in the middle of a run. Each drill prints a row of the table in docs/reliability.md.
const WAIT = { timeout: 120_000, interval: 50 };
const SCRIPT = 'case "$prompt" in *8s*) sleep 8;; esac\nturn done\n';
const IDS = ["t0", "t1", "t2", "t3"];
const ROWS = IDS.map((id, index) => ({ id, input: index === 1 ? "8s" : "short" }));
const tell = (row: object): void => void process.stdout.write(`${JSON.stringify(row)}\n`);

interface Drill {
  command: FakeCommand;
  redis: TestRedis;
  client: Redis;
  run: RunningCommand;
}

/** A run on a Redis of its own, in the middle of its second session. */
async function midRun(options: TestRedisOptions = {}, env: Record<string, string> = {}): Promise<Drill> {
  const redis = await startTestRedis({ tcp: { password: "pw" }, ...options });
  onTestFinished(() => redis.stop());
  const client = new Redis(redisOptions(redis.target, "command"));
  client.on("error", () => undefined);
  onTestFinished(() => client.disconnect());
  const command = await fakeCommand(SCRIPT);
  const url = redis.target.kind === "url" ? redis.target.url : "";
  Object.assign(command.env, { REDIS_URL: url, ROLLCALL_SECRET_KEY: randomBytes(32).toString("base64"), ...env });
  Object.assign(command.env, { ROLLCALL_ARTIFACTS_DIR: join(command.root, "out", "artifacts") });
  const run = command.start(ROWS, "--workers", "1");
  await vi.waitFor(() => expect([...command.results().keys()]).toEqual(["t0"]), WAIT);
  await vi.waitFor(async () => expect(await client.keys("*:ledger:*t1*")).toHaveLength(1), WAIT);
  return { command, redis, client, run };
}

/** Waits for the end, for ten minutes at most, and notes what it was. `since`: of the fault. */
async function endOf(what: string, { command, run }: Drill, since: number) {
  const { code, stderr } = await run.ended;
  const said = stderr.split("\n").filter((line) => line !== "" && !line.startsWith("{") && !/^\d+\/4 done|^results: /.test(line));
  const saved = [...command.results().keys()].length;
  tell({ what, code, seconds: Math.round((performance.now() - since) / 1_000), saved, said: said.join(" | ").slice(0, 160) });
  return { code, stderr, saved };
}

const asEnded = { code: 0, saved: 4 };

describe("in the middle of a run, Redis", () => {
  const passing: [what: string, begin: (drill: Drill) => Promise<unknown>, end: (drill: Drill) => Promise<unknown>][] = [
    ["full", ({ client }) => client.config("SET", "maxmemory", 1), ({ client }) => client.config("SET", "maxmemory", 0)],
    ["read-only", ({ client }) => client.replicaof("127.0.0.1", 1), ({ client }) => client.replicaof("NO", "ONE")],
  ];
  it.each(passing)("is %s for 15 s: it is told with its cause, and all end once [fault B7]", async (what, begin, end) => {
    const drill = await midRun();
    const since = performance.now();
    await begin(drill);
    await delay(15_000);
    await end(drill);
    const ended = await endOf(`Redis ${what} for 15 s`, drill, since);
    expect(ended).toMatchObject(asEnded);
    expect(ended.stderr).toMatch(/Redis is (full|a read-only replica)/);
  });

  it("comes back without its data: the loss is told, and all end once [fault B6]", async () => {
    const drill = await midRun({ appendonly: false });
    const since = performance.now();
    await drill.redis.kill9();
    await drill.redis.restart();
    const ended = await endOf("Redis restarted without data", drill, since);
    expect(ended).toMatchObject(asEnded);
    expect(ended.stderr).toContain("Redis has lost this run");
  });

  it("is gone for good: it is told, and two signals end the command within seconds [fault B5]", async () => {
    const drill = await midRun();
    await drill.redis.kill9();
    await vi.waitFor(() => expect(drill.run.stderr()).toContain("Redis does not answer"), WAIT);
    drill.run.child.kill("SIGTERM");
    await delay(1_000);
    const since = performance.now();
    drill.run.child.kill("SIGTERM");
    const ended = await endOf("Redis of REDIS_URL gone, two SIGTERM", drill, since);
    expect(performance.now() - since).toBeLessThan(20_000); // 5 s and what a busy machine needs
    expect(ended.code).toBe(75);
  });

  it("answers 3 s late: refused at the start, naming it", async () => {
    const redis = await startTestRedis({ tcp: { password: "pw" } });
    onTestFinished(() => redis.stop());
    const slow = await slowProxy(redis, 3_000);
    const command = await fakeCommand("turn done\n");
    const key = randomBytes(32).toString("base64");
    Object.assign(command.env, { REDIS_URL: slow, ROLLCALL_SECRET_KEY: key, ROLLCALL_ARTIFACTS_DIR: join(command.out, "artifacts") });
    const since = performance.now();
    const run = command.start(ROWS.slice(0, 2), "--workers", "2");
    const { code, stderr } = await endOf("Redis answers 3 s late", { command, redis, run } as Drill, since);
    expect(code).toBe(2);
    expect(stderr).toContain("no answer from the Redis at");
  });
});

it("the artifact store cannot be written to: refused at the start, naming the place", async () => {
  const command = await fakeCommand(SCRIPT);
  const place = join(command.root, "in-the-way");
  writeFileSync(place, "");
  Object.assign(command.env, { ROLLCALL_ARTIFACTS_DIR: join(place, "store") });
  const since = performance.now();
  const run = command.start(ROWS);
  const { code, stderr } = await run.ended;
  tell({
    what: "store unwritable",
    code,
    seconds: Math.round((performance.now() - since) / 1_000),
    saved: 0,
    said: stderr.slice(0, 160),
  });
  expect(stderr).toMatch(/^rollcall: .*in-the-way/m);
  expect(stderr).not.toContain("internal error");
  expect(code).toBe(2);
});

const LIBFAKETIME = ["/usr/lib", "/usr/lib64"]
  .flatMap((dir) => (existsSync(dir) ? readdirSync(dir).map((name) => join(dir, name, "faketime", "libfaketimeMT.so.1")) : []))
  .find((path) => existsSync(path));
if (LIBFAKETIME === undefined)
  process.stderr.write("NOT TESTED: clock jumps, for there is no libfaketime (Debian: apt-get install faketime)\n");

describe.skipIf(LIBFAKETIME === undefined)("the clock jumps by an hour in the middle of a run,", () => {
  it.each(["+1h", "-1h"])("that of the worker, by %s: all end once", async (offset) => {
    const file = join((await fakeCommand(SCRIPT)).root, "clock");
    writeFileSync(file, "+0\n");
    const drill = await midRun({}, fakeClock(file));
    writeFileSync(file, `${offset}\n`);
    const since = performance.now();
    const ended = await endOf(`the worker's clock ${offset}`, drill, since);
    expect(ended).toMatchObject(asEnded);
    expect([...drill.command.results().values()].map(({ status }) => status)).toEqual(Array(4).fill("completed"));
  });

  it.each(["+1h", "-1h"])("that of Redis, by %s: all end once", async (offset) => {
    const file = join((await fakeCommand(SCRIPT)).root, "clock");
    writeFileSync(file, "+0\n");
    const drill = await midRun({ env: fakeClock(file) });
    writeFileSync(file, `${offset}\n`);
    const since = performance.now();
    const ended = await endOf(`Redis' clock ${offset}`, drill, since);
    expect(ended).toMatchObject(asEnded);
  });
});

/** What counts durations goes on: only the time of day jumps. */
function fakeClock(file: string): Record<string, string> {
  return { LD_PRELOAD: LIBFAKETIME!, FAKETIME_TIMESTAMP_FILE: file, FAKETIME_NO_CACHE: "1", FAKETIME_DONT_FAKE_MONOTONIC: "1" };
}

/** Passes on what Redis answers so many ms later. Answers the URL. */
async function slowProxy(redis: TestRedis, ms: number): Promise<string> {
  const real = new URL(redis.target.kind === "url" ? redis.target.url : "");
  const sockets = new Set<Socket>();
  const proxy = createServer((client) => {
    const server = connect(Number(real.port), real.hostname);
    for (const socket of [client, server]) {
      sockets.add(socket);
      socket.on("error", () => undefined);
      socket.on("close", () => {
        client.destroy();
        server.destroy();
      });
    }
    client.pipe(server);
    server.on("data", (chunk: Buffer) => setTimeout(() => client.destroyed || client.write(chunk), ms));
  }).listen(0, "127.0.0.1");
  await once(proxy, "listening");
  onTestFinished(() => {
    proxy.close();
    for (const socket of sockets) socket.destroy();
  });
  real.port = String((proxy.address() as AddressInfo).port);
  return real.href;
}
