// SPDX-License-Identifier: Apache-2.0
import { randomBytes } from "node:crypto";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { parseSecretKeys } from "../../src/activation/secret-keys.ts";
import { enqueueActivations } from "../../src/queue/enqueue.ts";
import { openQueues, type Queues } from "../../src/queue/queues.ts";
import { startTestRedis, type TestRedis } from "../../test/support/redis.ts";
import { startApiProcess, type ApiProcess } from "./api-process.ts";
import { eventWriter } from "./event-writer.ts";
import { openEventReader, type EventReader } from "./event-reader.ts";
import { httpClient, type HttpClient } from "./http-client.ts";
import { inPieces, parsed, rowsOf, RUN, sharedOut } from "./rows.ts";

export interface RoundOptions {
  /** Of the built program. */
  entry: string;
  tasks: number;
  batch: number;
  clients: number;
  readers: number;
  /** Readers that get `floodMb` of events before the load begins. */
  flooded: number;
  floodMb: number;
  /** The flooded ones stop after the first bytes, until all has ended. */
  stop: boolean;
  /** How many are cancelled in the end, and waited for: at least those that have readers. */
  ends: number;
  say: (text: string) => void;
}

export interface Round {
  /** By the library, in one process. */
  floor: Phase;
  enqueue: Phase;
  cancel: Phase;
  state: Phase;
  /** GET /healthz, one after the other, before the load. */
  healthz_ms: number[];
  /** From Redis to a live reader, during the enqueueing. */
  delivery_ms: number[];
  ends_seconds: number;
  /** Of 1,000 activations while they were enqueued: by the library's process, and by the API's, which served the readers too. */
  cpu_seconds: { floor: number; api: number };
  memory_mb: { before: number; after: number; peak: number };
  /** The most that the server had read ahead for one stopped reader, and what there was to read, in MB. */
  read_ahead_mb: { most: number; of: number };
  asked_again: number;
  /** Why readers had to connect again, each time. */
  reconnected: string[];
  /** Empty when nothing was lost and nothing came twice. */
  faults: string[];
}

interface Phase {
  seconds: number;
  /** Of each request, or call. */
  ms: number[];
  per_second: number;
}

const MOST_MS = 1_800_000;

/** A fresh Redis and a fresh API process for each round. */
export async function runRound(options: RoundOptions): Promise<Round> {
  const dir = await mkdtemp(join(tmpdir(), "rollcall-api-load-"));
  const secretKey = randomBytes(32).toString("base64");
  const key = randomBytes(24).toString("base64url");
  const undo: (() => unknown)[] = [() => rm(dir, { recursive: true, force: true })];
  try {
    await mkdir(join(dir, "store"));
    const floor = await withRedis((queues) => addByLibrary(queues, options, secretKey));
    options.say(`floor: ${options.tasks} by the library in ${floor.seconds.toFixed(1)} s`);
    return await withRedis(async (queues, redis) => {
      const api = await startApiProcess({ entry: options.entry, dir, redisUrl: urlOf(redis), key, secretKey });
      const clients = Array.from({ length: options.clients }, () => httpClient(api.origin, key));
      const readers: EventReader[] = [];
      try {
        const loaded = await load({ queues, api, key, clients, readers }, options);
        const per = (seconds: number): number => seconds / ((options.tasks - options.batch) / 1_000);
        return { floor, ...loaded, cpu_seconds: { floor: per(floor.cpu), api: per(loaded.cpu) } };
      } finally {
        for (const one of [...clients, ...readers]) one.close();
        await api.stop();
      }
    });
  } finally {
    for (const step of undo) await step();
  }
}

interface Parts {
  queues: Queues;
  api: ApiProcess;
  key: string;
  clients: readonly HttpClient[];
  /** Gets those that are opened. */
  readers: EventReader[];
}

async function load(
  { queues, api, key, clients, readers }: Parts,
  options: RoundOptions,
): Promise<Omit<Round, "floor" | "cpu_seconds"> & { cpu: number }> {
  const { say, tasks, ends } = options;
  const faults: string[] = [];
  const check = (what: string, found: unknown, expected: unknown): void => {
    if (found !== expected) faults.push(`${what}: ${String(found)} instead of ${String(expected)}`);
  };
  const rows = rowsOf(tasks);
  const ids = rows.map(({ activation_id }) => activation_id);
  const [first, ...batches] = inPieces(rows, options.batch);

  const before = (await api.memory()).now;
  const [one] = clients;
  for (let count = 0; count < 200; count++) await one!.call("/healthz");
  const healthz_ms = one!.took.splice(0);

  const added = new Map<string, number>();
  const enqueue = async (client: HttpClient, batch: typeof rows): Promise<void> => {
    const body = { method: "POST", body: JSON.stringify(batch) };
    const again = client.askedAgain;
    const { activations } = (await client.call("/v1/activations", body)) as { activations: { activation_id: string; outcome: string }[] };
    for (const { activation_id, outcome } of activations) {
      // What was asked again may have been added by the time before.
      if (outcome === "added" || client.askedAgain > again) added.set(activation_id, (added.get(activation_id) ?? 0) + 1);
    }
  };
  await enqueue(one!, first!); // so that there is something to follow

  // Of each flooded activation one reader may stop; another always reads, and sets the pace of the flood.
  const timing = { on: false };
  const open = (activationId: string): EventReader => {
    const reader = openEventReader({ origin: api.origin, key, activationId, timing });
    readers.push(reader);
    return reader;
  };
  const flooded = ids.slice(0, options.flooded);
  const stoppers = flooded.map(open);
  const pacers = flooded.map(open);
  const watchers = ids.slice(options.flooded, options.readers - options.flooded).map(open);
  if (options.stop) for (const reader of stoppers) reader.stop();
  const writer = eventWriter(queues);
  await Promise.all(pacers.map((reader) => writer.flood(reader, options.floodMb * 1e6)));
  say(
    `${readers.length} readers, ${options.stop ? stoppers.length : 0} of them stopped; ${options.floodMb} MB of events to each of ${flooded.length}`,
  );

  const cpuBefore = await api.cpuSeconds();
  const enqueueTime = phase(clients, tasks - options.batch);
  timing.on = true;
  const stopPacing = writer.pace(watchers.map(({ activationId }) => activationId));
  await sharedOut(clients, batches, enqueue);
  const enqueued = enqueueTime();
  const cpu = (await api.cpuSeconds()) - cpuBefore;
  await stopPacing();
  timing.on = false;
  say(`${tasks - options.batch} enqueued in ${enqueued.seconds.toFixed(1)} s`);
  check("activations added", added.size, tasks);
  check("activations added twice", [...added.values()].filter((times) => times !== 1).length, 0);

  const stateTime = phase(clients, tasks);
  const found = new Map<string, string>();
  await sharedOut(clients, inPieces(ids, 1_000), async (client, activation_ids) => {
    const answer = await client.call("/v1/activations/state", { method: "POST", body: JSON.stringify({ activation_ids }) });
    for (const { activation_id, state } of (answer as { activations: { activation_id: string; state: string }[] }).activations)
      found.set(activation_id, state);
  });
  const state = stateTime();
  check("activations found waiting", ids.filter((id) => found.get(id) === "waiting" || found.get(id) === "running").length, tasks);
  check("total of the run", (await runOf(one!)).total, tasks);

  const endsSince = performance.now();
  const cancelTime = phase(clients, ends);
  await sharedOut(clients, inPieces(ids.slice(0, ends), options.batch), async (client, activation_ids) => {
    await client.call("/v1/activations/cancel", { method: "POST", body: JSON.stringify({ activation_ids, reason: "load" }) });
  });
  const cancel = cancelTime();
  for (let run = await runOf(one!), told = 0; run.ended.cancelled < ends; run = await runOf(one!)) {
    check("total of the run while it ends", run.total, tasks);
    if (performance.now() - told > 10_000) {
      say(`${run.ended.cancelled} of ${ends} have ended`);
      told = performance.now();
    }
    if (faults.length > 0 || performance.now() - endsSince > MOST_MS) break;
    await delay(500);
  }
  const ends_seconds = (performance.now() - endsSince) / 1_000;
  check("activations that ended", (await runOf(one!)).ended.cancelled, ends);
  const results = await resultIds(one!, ends);
  check("results", results.length, ends);
  check("different results", new Set(results).size, ends);

  for (const reader of stoppers) reader.goOn();
  await Promise.race([Promise.all(readers.map(({ over }) => over)), delay(120_000, undefined, { ref: false })]);
  for (const { activationId, seen } of readers) {
    check(`ends told to a reader of ${activationId}`, seen.ended, 1);
    check(`events told twice to a reader of ${activationId}`, seen.twice, 0);
  }
  for (const { activationId, seen } of [...watchers, ...pacers, ...(options.stop ? [] : stoppers)]) {
    check(`events not told to a reader of ${activationId}`, seen.missed, 0);
    check(`events told to a reader of ${activationId}`, seen.numbered, writer.written(activationId));
  }
  const memory = await api.memory();
  say(`${ends} ended ${ends_seconds.toFixed(1)} s after the first cancel; peak of the API process ${memory.peak} MB`);
  return {
    enqueue: enqueued,
    cpu,
    cancel,
    state,
    healthz_ms,
    delivery_ms: watchers.flatMap(({ seen }) => seen.delays),
    ends_seconds,
    memory_mb: { before, after: memory.now, peak: memory.peak },
    read_ahead_mb: { most: options.stop ? Math.max(0, ...stoppers.map(({ seen }) => seen.bytesAhead)) / 1e6 : 0, of: options.floodMb },
    asked_again: clients.reduce((sum, { askedAgain }) => sum + askedAgain, 0),
    reconnected: readers.flatMap(({ seen }) => seen.cuts),
    faults,
  };
}

async function runOf(client: HttpClient): Promise<{ total: number; ended: { cancelled: number } }> {
  return (await client.call(`/v1/runs/${RUN}`)) as Awaited<ReturnType<typeof runOf>>;
}

async function resultIds(client: HttpClient, most: number): Promise<string[]> {
  const response = await client.open(`/v1/runs/${RUN}/results?limit=${most + 1_000}`);
  const ids: string[] = [];
  for await (const line of createInterface(response))
    if (line !== "") ids.push((JSON.parse(line) as { activation_id: string }).activation_id);
  return ids;
}

/** What the clients' requests take from now until the answer is called. */
function phase(clients: readonly HttpClient[], activations: number): () => Phase {
  for (const { took } of clients) took.length = 0;
  const since = performance.now();
  return () =>
    phaseSince(
      since,
      activations,
      clients.flatMap(({ took }) => took.splice(0)),
    );
}

function phaseSince(since: number, activations: number, ms: number[]): Phase {
  const seconds = (performance.now() - since) / 1_000;
  return { seconds, per_second: activations / seconds, ms };
}

/** The same activations in the same batches, as many at once, straight into Redis. */
async function addByLibrary(queues: Queues, { tasks, batch, clients }: RoundOptions, secretKey: string): Promise<Phase & { cpu: number }> {
  const [first, ...batches] = inPieces(parsed(rowsOf(tasks)), batch);
  const keys = parseSecretKeys(secretKey);
  await enqueueActivations(queues, first!, { keys });
  const ms: number[] = [];
  const cpuBefore = process.cpuUsage();
  const since = performance.now();
  await sharedOut(Array.from({ length: clients }), batches, async (_, piece) => {
    const began = performance.now();
    await enqueueActivations(queues, piece, { keys });
    ms.push(performance.now() - began);
  });
  const { user, system } = process.cpuUsage(cpuBefore);
  return { ...phaseSince(since, tasks - batch, ms), cpu: (user + system) / 1e6 };
}

async function withRedis<T>(work: (queues: Queues, redis: TestRedis) => Promise<T>): Promise<T> {
  const redis = await startTestRedis({ tcp: { password: randomBytes(9).toString("hex") } });
  const queues = openQueues(redis.target, { onError: () => undefined });
  try {
    return await work(queues, redis);
  } finally {
    await queues.close();
    await redis.stop();
  }
}

function urlOf({ target }: TestRedis): string {
  if (target.kind !== "url") throw new Error("a Redis on TCP is needed");
  return target.url;
}
