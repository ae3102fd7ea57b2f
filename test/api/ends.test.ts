// SPDX-License-Identifier: Apache-2.0
import { getEventListeners, once } from "node:events";
import { request, type IncomingMessage } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { expect, it, onTestFinished, vi } from "vitest";
import { completedOf, completes, runsUntilStopped, type Run } from "../queue/rig.ts";
import { asked, startApiRig, type ApiRig } from "./rig.ts";

interface Sse {
  id: string;
  event: string;
  data: { stage: string; attempt: number; note?: string };
}

/** Opens events and reads them only when told to. */
async function openEvents(
  rig: ApiRig,
  path: string,
  headers: Record<string, string> = {},
): Promise<{ response: IncomingMessage; text(): string }> {
  const asking = request(rig.api.origin + path, { headers: { authorization: `Bearer ${rig.key}`, ...headers } });
  asking.end();
  onTestFinished(() => void asking.destroy());
  asking.on("error", () => undefined);
  const [response] = (await once(asking, "response")) as [IncomingMessage];
  response.on("error", () => undefined);
  let text = "";
  response.setEncoding("utf8").on("data", (part: string) => (text += part));
  return { response, text: () => text };
}

function eventsIn(text: string): Sse[] {
  return text.split("\n\n").flatMap((block) => {
    const field = (name: string): string | undefined => new RegExp(`^${name}: (.*)$`, "m").exec(block)?.[1];
    const data = field("data");
    return data === undefined ? [] : [{ id: field("id")!, event: field("event")!, data: JSON.parse(data) as Sse["data"] }];
  });
}

/** Ends when told to. */
function stepwise(rig: ApiRig): { run: Run; finish: () => void } {
  let finish!: () => void;
  const told = new Promise<void>((resolve) => (finish = resolve));
  const run: Run = async ({ activation, generation, ledger }) => {
    const { attempt } = await ledger.takeAttempt();
    ledger.progress({ stage: "starting", attempt });
    await told;
    ledger.progress({ stage: "collecting", attempt, counts: { turns: 1, tool_calls: 3, tokens: 50 } });
    return { kind: "ended", ...(await rig.store.commit(completedOf(activation, generation, attempt))) };
  };
  return { run, finish };
}

it("a result is waited for and comes when it is there; without waiting the state is answered instead", async () => {
  const rig = await startApiRig();
  await rig.sentinel();
  const { run, finish } = stepwise(rig);
  await rig.worker(run);
  await rig.call("/v1/activations", { body: asked("act-1") });
  expect(await rig.call("/v1/activations/act-1/result")).toMatchObject({ status: 202, body: { activation_id: "act-1", status: null } });
  expect((await rig.call("/v1/activations/act-1/result?wait=0.3")).status).toBe(202);

  const waiting = rig.call("/v1/activations/act-1/result?wait=3600");
  finish();
  expect(await waiting).toMatchObject({ status: 200, body: { schema: "rollcall.result/1", activation_id: "act-1", status: "completed" } });
  expect((await rig.call("/v1/activations/act-1/result")).body).toMatchObject({ status: "completed" });
  expect((await rig.call("/v1/activations/act-1")).body).toMatchObject({
    state: "ended",
    last_event: { stage: "ended", note: "completed" },
  });
});

it("what ended long ago is answered from the store; what was never queued is 404; longer waits than an hour are refused", async () => {
  const rig = await startApiRig();
  await rig.sentinel();
  await rig.worker(completes(rig.store));
  await rig.call("/v1/activations", { body: asked("act-1") });
  await rig.ended("act-1");
  await rig.queues.redis.flushall();
  expect(await rig.call("/v1/activations/act-1/result")).toMatchObject({ status: 200, body: { status: "completed" } });
  expect(await rig.call("/v1/activations/never/result?wait=5")).toMatchObject({ status: 404, body: { code: "activation_unknown" } });
  for (const id of ["..%2F..%2Fetc", "%00", "é"]) expect((await rig.call(`/v1/activations/${id}/result?wait=5`)).status).toBe(422);
  for (const wait of ["3601", "-1", "NaN", "1e999", "soon"])
    expect((await rig.call(`/v1/activations/act-1/result?wait=${wait}`)).status).toBe(422);
});

it("those that wait in line are told their position", async () => {
  const rig = await startApiRig();
  await rig.call("/v1/activations", { body: [asked("low", { priority: "low" }), asked("a"), asked("b")] });
  const positions = await Promise.all(
    ["a", "b", "low"].map(async (id) => (await rig.call(`/v1/activations/${id}`)).body.position as number),
  );
  expect(positions).toEqual([0, 1, 2]);
});

it("events come live, go on after Last-Event-ID, and end with the activation", async () => {
  const rig = await startApiRig();
  await rig.sentinel();
  const { run, finish } = stepwise(rig);
  await rig.worker(run);
  await rig.call("/v1/activations", { body: asked("act-1") });
  const live = await openEvents(rig, "/v1/activations/act-1/events");
  expect(live.response.headers["content-type"]).toContain("text/event-stream");
  await vi.waitFor(() => expect(eventsIn(live.text())).toMatchObject([{ event: "starting" }]), { timeout: 20_000 });
  finish();
  await once(live.response, "end");
  const all = eventsIn(live.text());
  expect(all.map(({ event }) => event)).toEqual(["starting", "collecting", "ended"]);
  expect(all[1]!.data).toMatchObject({ counts: { tool_calls: 3, tokens: 50 } });
  expect(all[2]!.data).toMatchObject({ stage: "ended", note: "completed", attempt: 0 });

  const again = await openEvents(rig, "/v1/activations/act-1/events", { "last-event-id": all[0]!.id });
  await once(again.response, "end");
  expect(eventsIn(again.text()).map(({ event }) => event)).toEqual(["collecting", "ended"]);
  // An EventSource that connects once more is told to stop.
  expect((await rig.call("/v1/activations/act-1/events", { headers: { "last-event-id": all[2]!.id } })).status).toBe(204);
  expect((await rig.call("/v1/activations/act-1/events", { headers: { "last-event-id": "yesterday" } })).status).toBe(422);
  expect((await rig.call("/v1/activations/never/events")).status).toBe(404);
});

it("a reader that stops reading is read for no further than what fits on its way, and misses nothing when it goes on", async () => {
  const rig = await startApiRig();
  let reads = 0;
  const xrange = rig.api.queues.redis.xrange.bind(rig.api.queues.redis);
  rig.api.queues.redis.xrange = (async (...args: Parameters<typeof xrange>) => {
    const entries = await xrange(...args);
    reads += entries.length;
    return entries;
  }) as typeof xrange;
  await rig.sentinel();
  await rig.worker(runsUntilStopped(() => undefined));
  await rig.call("/v1/activations", { body: asked("act-1") });
  await vi.waitFor(async () => expect((await rig.call("/v1/activations/act-1")).body.attempt).toBe(0), { timeout: 20_000 });

  const slow = await openEvents(rig, "/v1/activations/act-1/events");
  slow.response.pause();
  const note = "x".repeat(16_000);
  const sent = 1_500; // 24 MB: more than the kernel keeps for a connection
  for (let from = 0; from < sent; from += 100) {
    const batch = Array.from({ length: 100 }, (_, index) => ({ stage: "running" as const, attempt: 0, note: `${from + index} ${note}` }));
    // Uncapped, as if they had come one by one while somebody read them.
    const pipeline = rig.queues.redis.pipeline();
    for (const entry of batch) pipeline.xadd("{rollcall}:progress:act-1", "*", "entry", JSON.stringify(entry));
    await pipeline.exec();
  }
  let before = -1;
  await vi.waitFor(
    async () => {
      const now = reads;
      const still = now === before;
      before = now;
      await delay(200);
      expect(still && now > 0).toBe(true);
    },
    { timeout: 30_000, interval: 300 },
  );
  expect(reads).toBeLessThan(sent - 300);

  slow.response.resume();
  await vi.waitFor(() => expect(eventsIn(slow.text().slice(-40_000)).at(-1)?.data.note).toMatch(new RegExp(`^${sent - 1} `)), {
    timeout: 30_000,
  });
  const notes = eventsIn(slow.text()).flatMap(({ data }) => (data.note === undefined ? [] : [Number(data.note.split(" ")[0])]));
  expect(notes).toEqual(Array.from({ length: sent }, (_, index) => index));
});

it("waiting is bounded: beyond api.max_waiting a request is answered 503 at once, and places become free again", async () => {
  const rig = await startApiRig({
    ports: { limits: { max_body_bytes: 1e6, max_file_bytes: 1e6, requests_per_second: 1e4, max_waiting: 2 } },
  });
  await rig.call("/v1/activations", { body: asked("act-1") });
  const open = [await openEvents(rig, "/v1/activations/act-1/events"), await openEvents(rig, "/v1/activations/act-1/events")];
  const refused = await rig.call("/v1/activations/act-1/result?wait=10");
  expect(refused).toMatchObject({ status: 503, body: { code: "too_many_waiting" } });
  expect(refused.headers.get("retry-after")).toBe("5");
  expect((await rig.call("/v1/activations/act-1/result")).status).toBe(202); // does not wait

  open[0]!.response.destroy();
  await vi.waitFor(async () => expect((await rig.call("/v1/activations/act-1/result?wait=0.1")).status).toBe(202), { timeout: 20_000 });
});

it("many wait at once over two connections, and all are answered when it ends", async () => {
  const rig = await startApiRig({
    ports: { limits: { max_body_bytes: 1e6, max_file_bytes: 1e6, requests_per_second: 1e4, max_waiting: 1_000 } },
  });
  await rig.sentinel();
  const { run, finish } = stepwise(rig);
  await rig.worker(run);
  const ids = Array.from({ length: 4 }, (_, index) => `act-${index}`);
  await rig.call("/v1/activations", { body: ids.map((id) => asked(id)) });
  await rig.call("/v1/activations/act-0/result?wait=0.01"); // the watch is open
  const clients = async (): Promise<number> => ((await rig.queues.redis.client("LIST")) as string).trim().split("\n").length;
  const before = await clients();
  const waiting = Array.from({ length: 60 }, (_, index) => rig.call(`/v1/activations/${ids[index % 4]}/result?wait=60`));
  await delay(500);
  expect(await clients()).toBeLessThanOrEqual(before + 1);
  finish();
  for (const answer of await Promise.all(waiting)) expect(answer.status).toBe(200);
});

it("requests leave nothing behind in the signal of the server, which lives as long as its process", async () => {
  const stopping = new AbortController().signal;
  const rig = await startApiRig({ ports: { stopping } });
  await rig.sentinel();
  await rig.worker(completes(rig.store));
  await rig.call("/v1/activations", { body: asked("act-1") });
  for (let count = 0; count < 5; count++) {
    expect((await rig.call("/v1/activations/act-1/result?wait=60")).status).toBe(200);
    expect((await rig.call("/v1/activations/act-1/events")).body).toContain("event: ended");
    expect((await rig.call("/v1/runs/run-1/results")).status).toBe(200);
    expect((await rig.call("/v1/results/claim", { body: { wait: 0.01 } })).status).toBe(200);
  }
  // Where Node keeps what AbortSignal.any made of it, for ever.
  const kept = Object.getOwnPropertySymbols(stopping).find(({ description }) => description === "kDependantSignals");
  const signals = kept === undefined ? undefined : (stopping as unknown as Record<symbol, Set<unknown> | undefined>)[kept];
  expect(signals?.size ?? 0).toBe(0);
  expect(getEventListeners(stopping, "abort")).toHaveLength(1);
});

it("a server that stops answers those who wait, and ends their events", async () => {
  const rig = await startApiRig();
  await rig.call("/v1/activations", { body: asked("act-1") });
  const events = await openEvents(rig, "/v1/activations/act-1/events");
  const waiting = rig.call("/v1/activations/act-1/result?wait=3600");
  await vi.waitFor(() => expect(events.text()).not.toBe(""), { timeout: 10_000 });
  const ended = once(events.response, "end");
  await rig.api.stop();
  expect((await waiting).status).toBe(202);
  await ended;
});

it("events and waits outlast a Redis that is restarted", async () => {
  const rig = await startApiRig();
  await rig.call("/v1/activations", { body: asked("act-1") });
  const events = await openEvents(rig, "/v1/activations/act-1/events");
  await rig.redis.restart();
  await rig.queues.redis.xadd("{rollcall}:progress:act-1", "*", "entry", JSON.stringify({ stage: "running", attempt: 0, note: "after" }));
  await vi.waitFor(() => expect(eventsIn(events.text()).at(-1)?.data.note).toBe("after"), { timeout: 30_000 });
});
