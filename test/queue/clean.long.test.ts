// SPDX-License-Identifier: Apache-2.0
import { setTimeout as delay } from "node:timers/promises";
import { expect, it, onTestFinished } from "vitest";
import { connectRedis } from "../../src/redis/connect.ts";
import { startTestRedis } from "../support/redis.ts";
import { startRollcall } from "../support/rollcall-command.ts";

const JOBS = 100_000;
const ENDED_AT = 1_700_000_000_000;

it("100,000 ended activations are cleaned while others get their answers from Redis [D10]", async () => {
  const redis = await startTestRedis({ tcp: { password: "pw" }, args: ["--appendfsync", "everysec"] });
  onTestFinished(() => redis.stop());
  const connection = connectRedis(redis.target, { role: "command", onError: () => undefined });
  onTestFinished(() => connection.disconnect());

  // As workers leave them; made directly, because a hundred thousand real ends take minutes.
  for (let from = 0; from < JOBS; from += 1_000) {
    const pipeline = connection.pipeline();
    for (let index = from; index < from + 1_000; index += 1) {
      const id = `act-${index}`;
      const data = JSON.stringify({ activation_id: id, run_id: "run-1", generation: 0 });
      const child = `{rollcall}:activations:${id}`;
      const parent = `{rollcall}:final:f-${id}`;
      pipeline.hset(child, { data, opts: "{}", finishedOn: ENDED_AT, parentKey: parent, returnvalue: "{}" });
      pipeline.zadd("{rollcall}:activations:completed", ENDED_AT + index, id);
      pipeline.hset(parent, { data, opts: "{}", finishedOn: ENDED_AT, returnvalue: "{}" });
      pipeline.hset(`${parent}:processed`, child, "{}");
      pipeline.zadd("{rollcall}:final:completed", ENDED_AT + index, `f-${id}`);
      pipeline.hset(`{rollcall}:ledger:${id}`, { generation: 0, next: 1 });
      pipeline.hset("{rollcall}:statuses:run-1", id, "completed");
    }
    await pipeline.exec();
  }

  async function pingMs(): Promise<number> {
    const begun = performance.now();
    await connection.ping();
    return performance.now() - begun;
  }
  const p99 = (times: number[]): number => times.toSorted((a, b) => a - b)[Math.floor(times.length * 0.99)]!;
  const before: number[] = [];
  for (let count = 0; count < 200; count += 1) before.push(await pingMs());

  const env = { REDIS_URL: redis.target.kind === "url" ? redis.target.url : "" };
  const begun = performance.now();
  const cleaning = startRollcall(["clean", "--json"], { env });
  const during: number[] = [];
  while (cleaning.child.exitCode === null) {
    during.push(await pingMs());
    await delay(5);
  }
  const { stdout, stderr } = await cleaning.ended;
  expect(cleaning.child.exitCode, stderr).toBe(0);
  expect(JSON.parse(stdout)).toEqual({ dry_run: false, activations: JOBS, agent_sessions: 0, strays: 0 });
  expect((await connection.keys("*")).filter((key) => /act-|run-1/.test(key))).toEqual([]);
  const took = performance.now() - begun;
  process.stderr.write(
    `${JOBS} cleaned in ${Math.round(took / 1_000)} s; PING p99 ${p99(during).toFixed(1)} ms during ${during.length} pings, ${p99(before).toFixed(1)} ms before\n`,
  );
  // One script for all of it would let others wait for most of that time; how long a part takes is the machine's matter.
  expect(during.length).toBeGreaterThan(100);
  expect(Math.max(...during)).toBeLessThan(took / 5);
}, 300_000);
