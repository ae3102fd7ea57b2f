// SPDX-License-Identifier: Apache-2.0
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { expect, it, vi } from "vitest";
import { connectRedis } from "../../src/redis/connect.ts";
import { fakeCommand, type FakeCommand } from "../support/fake-command.ts";
import type { CommandEnd, RunningCommand } from "../support/rollcall-command.ts";

const WAIT = { timeout: 90_000, interval: 50 };
const SCRIPT =
  'case "$prompt" in *8s*) sleep 8; turn done; exit;; esac\n' +
  'case "$prompt" in *long*) echo \'{"type":"thread.started","thread_id":"t"}\'; sleep 600;; *) turn done;; esac\n';
const ROWS = [
  { id: "short", input: "short" },
  { id: "long", input: "long" },
];

/** The embedded Redis cannot start again, and its keeper dies. */
function takeRedisAway(command: FakeCommand): void {
  const state = join(command.root, "state");
  const dir = readdirSync(state)
    .map((name) => join(state, name))
    .find((path) => readdirSync(path).includes("keeper.lock"))!;
  writeFileSync(join(dir, "appendonlydir", "appendonly.aof.manifest"), "nonsense\n");
  process.kill((JSON.parse(readFileSync(join(dir, "keeper.lock"), "utf8")) as { pid: number }).pid, "SIGKILL");
}

function redisSocket(command: FakeCommand): string {
  const sockets = join(command.root, "run", "rollcall");
  return join(
    sockets,
    readdirSync(sockets).find((name) => /^[0-9a-f]+\.sock$/.test(name))!,
  );
}

async function within(ms: number, run: RunningCommand): Promise<CommandEnd> {
  const end = await Promise.race([run.ended, delay(ms, null, { ref: false })]);
  if (end === null) throw new Error(`still there after ${ms} ms; its last words:\n${run.stderr().slice(-2_000)}`);
  return end;
}

it("the embedded Redis is gone for good in mid-run: one sentence, exit code 75 within seconds, what ended is recorded [fault B5]", async () => {
  const command = await fakeCommand(SCRIPT);
  const run = command.start(ROWS, "--concurrency", "2", "--json");
  await vi.waitFor(() => expect(run.stdout()).toMatch(/"running":1,/), WAIT);
  await vi.waitFor(() => expect([...command.results().keys()]).toEqual(["short"]), WAIT);
  takeRedisAway(command);
  const lost = performance.now();
  const { code, stderr } = await within(60_000, run);
  expect.soft(performance.now() - lost).toBeLessThan(40_000); // about 8 s on an idle machine: Codex' grace is 5 of them
  expect
    .soft(stderr.split("\n").filter((line) => line.startsWith("rollcall: ")))
    .toEqual([
      expect.stringMatching(
        /^rollcall: the embedded Redis is gone and could not be started again; what ended is saved.*the same command goes on: .*did not start/,
      ),
    ]);
  expect.soft(stderr.split("\n").length).toBeLessThan(40);
  expect(code).toBe(75);
  expect([...command.results().keys()]).toEqual(["short"]);
  expect(JSON.parse(readFileSync(join(command.out, "summary.json"), "utf8"))).toMatchObject({ interrupted: true });
});

it("a Redis that is emptied in mid-run: the loss is told, ended tasks are known from the store, the rest is queued again and ends once [fault B6]", async () => {
  const command = await fakeCommand(SCRIPT);
  const rows = ["short", "8s", "short too", "short as well"].map((input, index) => ({ id: `t${index}`, input }));
  const run = command.start(rows, "--concurrency", "1", "--json");
  await vi.waitFor(() => expect([...command.results().keys()]).toEqual(["t0"]), WAIT);
  const redis = connectRedis({ kind: "socket", path: redisSocket(command) }, { role: "command", onError: () => undefined });
  await vi.waitFor(async () => expect(await redis.keys("*:ledger:*t1*")).toHaveLength(1), WAIT); // it runs
  await redis.flushall();
  redis.disconnect();
  const { code, stderr } = await within(90_000, run);
  expect.soft(stderr).toMatch(/Redis has lost this run \(it was emptied, or came back without its data\): [23] tasks are queued again/);
  const results = command.results();
  expect([...results.keys()].sort()).toEqual(["t0", "t1", "t2", "t3"]);
  expect([...results.values()].map(({ status, attempts }) => [status, attempts.length])).toEqual(
    ["t0", "t1", "t2", "t3"].map(() => ["completed", 1]),
  );
  expect(code).toBe(0);
});
