// SPDX-License-Identifier: Apache-2.0
import { setTimeout as delay } from "node:timers/promises";
import { Worker } from "bullmq";
import { pino } from "pino";
import { expect, it, onTestFinished, vi } from "vitest";
import { PREFIX } from "../../src/queue/names.ts";
import { trimUnread, watchUnread } from "../../src/queue/unread-results.ts";
import { redisOptions } from "../../src/redis/connect.ts";
import { completes } from "../queue/rig.ts";
import { asked, callApi, startApiRig, type ApiRig } from "./rig.ts";

interface Claimed {
  result_id: string;
  receipt: string;
  delivery: number;
  result: { activation_id: string; status: string };
}

async function withResults(ids: readonly string[]): Promise<ApiRig> {
  const rig = await startApiRig();
  await rig.sentinel();
  await rig.worker(completes(rig.store));
  await rig.call("/v1/activations", { body: ids.map((id) => asked(id, { reply_to: "results-py" })) });
  for (const id of ids) await rig.ended(id);
  return rig;
}

async function claim(rig: ApiRig, body: Record<string, unknown>): Promise<Claimed[]> {
  const { status, body: reply } = await rig.call("/v1/results/claim", { body: { queue: "results-py", ...body } });
  expect(status).toBe(200);
  return reply.results as Claimed[];
}

const idOf = ({ result_id, receipt }: Claimed): { result_id: string; receipt: string } => ({ result_id, receipt });

it("claimed results are nobody else's until they are acknowledged, at any process, as often as one likes", async () => {
  const rig = await withResults(["a", "b", "c"]);
  const two = await claim(rig, { max: 2 });
  expect(two).toMatchObject([{ delivery: 1, result: { status: "completed" } }, { delivery: 1 }]);
  const [third] = await claim(rig, { max: 10 });
  expect(new Set([...two, third!].map(({ result }) => result.activation_id))).toEqual(new Set(["a", "b", "c"]));
  expect(await claim(rig, { max: 10 })).toEqual([]);
  expect((await rig.call("/v1/results/queues")).body.queues).toMatchObject([{ queue: "results-py", unread: 0, claimed: 3 }]);

  const other = await rig.serve();
  const body = {
    queue: "results-py",
    results: [...two.map(idOf), { ...idOf(third!), receipt: two[0]!.receipt }, { ...idOf(third!), result_id: "never" }],
  };
  for (let time = 0; time < 2; time++) {
    const acked = await callApi(other.origin, "/v1/results/ack", { key: rig.key, body });
    expect(acked.body.results.map(({ outcome }: { outcome: string }) => outcome)).toEqual(["acked", "acked", "lost", "unknown"]);
  }
  expect((await rig.call("/v1/results/queues")).body.queues).toMatchObject([{ unread: 0, claimed: 1 }]);
});

it("what is not acknowledged within its lease comes again, says so, and the first receipt is worth nothing any more", async () => {
  const rig = await withResults(["a"]);
  const [first] = await claim(rig, { lease_seconds: 1 });
  const [second] = await claim(rig, { wait: 30, lease_seconds: 600 });
  expect(second).toMatchObject({ result_id: "a", delivery: 2 });
  const late = await rig.call("/v1/results/ack", { body: { queue: "results-py", results: [idOf(first!)] } });
  expect(late.body.results).toEqual([{ result_id: "a", outcome: "lost" }]);
  const now = await rig.call("/v1/results/ack", { body: { queue: "results-py", results: [idOf(second!)] } });
  expect(now.body.results).toEqual([{ result_id: "a", outcome: "acked" }]);
});

it("a claim waits for what is not there yet, also in a queue that nothing was delivered to", async () => {
  const rig = await startApiRig();
  await rig.sentinel();
  const waiting = claim(rig, { wait: 60 });
  await delay(300);
  await rig.worker(completes(rig.store));
  await rig.call("/v1/activations", { body: asked("a", { reply_to: "results-py" }) });
  expect(await waiting).toMatchObject([{ result_id: "a" }]);
});

it("a BullMQ worker of another program shares the queue with those who claim", async () => {
  const rig = await withResults(["a", "b"]);
  const [mine] = await claim(rig, { lease_seconds: 600 });
  const theirs: string[] = [];
  const worker = new Worker("results-py", async (job) => void theirs.push(job.id!), {
    connection: redisOptions(rig.redis.target, "blocking"),
    prefix: PREFIX,
  });
  worker.on("error", () => undefined);
  onTestFinished(() => worker.close());
  await vi.waitFor(() => expect(theirs).toEqual(["a", "b"].filter((id) => id !== mine!.result_id)), { timeout: 20_000 });
});

it("unread results are counted, warned of before their time is over, and then removed from the queue, not from the store", async () => {
  const rig = await withResults(["a", "b"]);
  const lines: string[] = [];
  const log = pino({ level: "warn" }, { write: (line: string) => void lines.push(line) });
  await delay(1_100);
  expect((await rig.call("/v1/results/queues")).body.queues[0].oldest_seconds).toBeGreaterThan(1);
  const stop = watchUnread(rig.queues, { log, keepMs: 1_000 * 1_000 });
  stop();
  await rig.queues.redis.ping();
  expect(lines).toEqual([]);

  // Of 100 s they have a few left.
  for (const id of ["a", "b"]) await rig.queues.redis.hset(`${PREFIX}:results-py:${id}`, "timestamp", Date.now() - 90_000);
  watchUnread(rig.queues, { log, keepMs: 100_000 })();
  await vi.waitFor(() => expect(lines.map((line) => JSON.parse(line) as unknown)).toMatchObject([{ queue: "results-py", unread: 2 }]), {
    timeout: 10_000,
  });
  expect(await trimUnread(rig.queues, "results-py", 100_000)).toBe(0);
  watchUnread(rig.queues, { log, keepMs: 80_000 })();
  await vi.waitFor(() => expect(JSON.parse(lines[1]!)).toMatchObject({ queue: "results-py", removed: 2 }), { timeout: 10_000 });
  expect((await rig.call("/v1/results/queues")).body.queues).toMatchObject([{ unread: 0 }]);
  expect((await rig.call("/v1/activations/a/result")).status).toBe(200);
});
