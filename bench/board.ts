// SPDX-License-Identifier: Apache-2.0
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import Table from "cli-table3";
import { pino } from "pino";
import { parseSecretKeys } from "../src/activation/secret-keys.ts";
import { openDirectoryStore } from "../src/artifacts/directory-store.ts";
import { activationSchema } from "../src/contract/activation.ts";
import { startActivationWorker } from "../src/queue/activation-worker.ts";
import { deliver } from "../src/queue/deliver.ts";
import { enqueueActivations } from "../src/queue/enqueue.ts";
import { openQueues } from "../src/queue/queues.ts";
import { resultOf } from "../test/support/result-documents.ts";
import { startTestRedis } from "../test/support/redis.ts";
import { startApiProcess } from "./api-load/api-process.ts";
import { atPercent, median } from "./api-load/percentiles.ts";
import { copyEnded } from "./board-load/copies.ts";
import { pingTimes } from "./board-load/pings.ts";

const HELP = `npm run bench:board -- [options]

How fast the dashboard opens and what it costs Redis: a real Redis, and a process of the API as rollcall serve starts it. The
floor is the same server with nothing queued. PING is asked every few ms on a connection of its own, while the page of a queue is
asked for all the time, and while rollcall clean removes all that ended. No browser: the page's own scripts are not in these times.

  --jobs N        ended activations (default 100000)
  --results N     results of --result-mb MB (500 of 3)
  --rounds N      times that each page is opened (20)
  --runs N        how often all of it (1)
  --fsync WHEN    always, as an embedded Redis does before each answer (default), or everysec: what of it is the disk
`;
const { values: flags } = parseArgs({
  options: {
    jobs: { type: "string", default: "100000" },
    results: { type: "string", default: "500" },
    "result-mb": { type: "string", default: "3" },
    rounds: { type: "string", default: "20" },
    runs: { type: "string", default: "1" },
    fsync: { type: "string", default: "always" },
    help: { type: "boolean", default: false },
  },
});
if (flags.help) {
  process.stdout.write(HELP);
  process.exit(0);
}
const [jobs, results, resultMb, rounds, runs] = [flags.jobs, flags.results, flags["result-mb"], flags.rounds, flags.runs].map(Number) as [
  number,
  number,
  number,
  number,
  number,
];
const ENTRY = fileURLToPath(new URL("../workers/api.js", import.meta.url));
const CLI = fileURLToPath(new URL("../src/cli/main.js", import.meta.url));
/** Large results are put into Redis whole, too, as a deployment may set it: so many. */
const WHOLE = 20;

const log = pino({ level: "silent" });
const figures = new Map<string, number[]>();
const note = (name: string, value: number): void => void figures.set(name, [...(figures.get(name) ?? []), value]);

for (let run = 1; run <= runs; run += 1) await oneRun();
const table = new Table({ head: ["", "median", "least", "most"] });
for (const [name, values] of figures)
  table.push([name, ...[median(values), Math.min(...values), Math.max(...values)].map((value) => value.toFixed(1))]);
console.log(`${jobs} ended activations, ${results} results of ${resultMb} MB, fsync ${flags.fsync}, runs: ${runs}\n${table.toString()}`);

async function oneRun(): Promise<void> {
  const dir = await mkdtemp(join(tmpdir(), "rollcall-board-"));
  const redis = await startTestRedis({ tcp: { password: randomBytes(9).toString("hex") }, args: ["--appendfsync", flags.fsync] });
  const redisUrl = redis.target.kind === "url" ? redis.target.url : "";
  const [key, secretKey] = [randomBytes(24).toString("hex"), randomBytes(32).toString("base64")];
  const store = await openDirectoryStore(join(dir, "store"));
  const queues = openQueues(redis.target, { onError: () => undefined });
  const start = () => startApiProcess({ entry: ENTRY, dir, redisUrl, key, secretKey });
  let api = await start();
  try {
    let cookie = await signIn(api.origin, key);
    const open = async (path: string): Promise<{ ms: number; bytes: number }> => {
      const since = performance.now();
      const page = await asked(api.origin, "/dashboard", cookie);
      const data = await asked(api.origin, path, cookie);
      return { ms: performance.now() - since, bytes: data === 0 || page === 0 ? 0 : data };
    };
    const several = async (name: string, path: string): Promise<void> => {
      const times: number[] = [];
      for (let round = 0; round < rounds; round += 1) times.push((await open(path)).ms);
      note(`${name}: page and its data, p50, ms`, median(times));
      note(`${name}: page and its data, most, ms`, Math.max(...times));
    };
    const list = "/dashboard/api/queues?activeQueue=activations";
    await open(list);
    await several("nothing queued (floor)", list);

    await endOne();
    await copyEnded(queues, "act-original", jobs, (index) => `act-${String(index).padStart(8, "0")}`);
    await api.stop();
    api = await start();
    cookie = await signIn(api.origin, key);
    note(`${jobs} ended, first of a new process: page and its data, ms`, (await open(list)).ms);
    await several(`${jobs} ended`, list);
    await several(`${jobs} ended, last page of them`, `${list}&status=completed&page=${Math.ceil(jobs / 10)}`);

    await largeResults();
    note(
      `${results} results of ${resultMb} MB: data of the queue's page, KB`,
      (await open("/dashboard/api/queues?activeQueue=results-large")).bytes / 1_000,
    );
    note(
      "the same, 100 on a page, KB",
      (await open("/dashboard/api/queues?activeQueue=results-large&status=waiting&jobsPerPage=100")).bytes / 1_000,
    );
    note(
      `${WHOLE} of them whole in Redis, KB`,
      (await open("/dashboard/api/queues?activeQueue=results-whole&jobsPerPage=100")).bytes / 1_000,
    );
    await several("large results", "/dashboard/api/queues?activeQueue=results-large");

    await pinged("nobody asks (floor)", () => new Promise((resolve) => setTimeout(resolve, 3_000)));
    await pinged("the page is asked for all the time", async () => {
      const until = performance.now() + 5_000;
      while (performance.now() < until) await open(list);
    });
    const left = await queues.final.getCompletedCount();
    const since = performance.now();
    await pinged("clean, and the page asked for all the time", async () => {
      const over = new AbortController();
      const done = clean().finally(() => over.abort());
      while (!over.signal.aborted) await open(list);
      await done;
    });
    note("clean: activations a second", left / ((performance.now() - since) / 1_000));
    if ((await queues.final.getCompletedCount()) > 0) throw new Error("clean left something");
  } finally {
    await api.stop();
    await queues.close();
    await redis.stop();
    await rm(dir, { recursive: true, force: true });
  }

  /** One activation, by the code that ends them all. */
  async function endOne(): Promise<void> {
    const activation = activationSchema.parse({
      activation_id: "act-original",
      run_id: "bench-run",
      episode_id: { rollout_id: "r-act-original" },
      task_id: { taskset: "bench", task_id: "act-original" },
      input: "x".repeat(1_000),
      reply_to: null,
    });
    const own = openQueues(redis.target, { onError: () => undefined });
    const facts = {
      worker_id: "w",
      host: "h",
      pid: process.pid,
      providers: ["bubblewrap"],
      codex_versions: [],
      schema_minor: 0,
      store_id: store.id,
      classes: [],
      held_back: null,
    };
    const keys = parseSecretKeys(secretKey);
    const worker = await startActivationWorker({
      queues: own,
      keys,
      concurrency: 1,
      store,
      log,
      facts: { ...facts, key_ids: keys.map(({ id }) => id) },
      run: async ({ activation: { activation_id, run_id }, ledger }) => {
        await ledger.takeAttempt();
        return { kind: "ended", ...(await store.commit(resultOf(activation_id, { run_id }))) };
      },
    });
    await enqueueActivations(queues, [activation], { keys });
    while ((await queues.final.getCompletedCount()) === 0) await new Promise((resolve) => setTimeout(resolve, 100));
    await worker.close({ graceMs: 5_000 });
    await own.close();
  }

  async function largeResults(): Promise<void> {
    const response = { text: "x".repeat(resultMb * 1_000_000) } as never;
    const text = JSON.stringify(resultOf("large", { response }));
    const once_stored = { ...store, readCommitted: async () => ({ text, uri: "file:///in/the/store/result.json" }) };
    for (let index = 0; index < results; index += 1)
      await deliver(queues, "results-large", resultOf(`large-${index}`, { response }), once_stored);
    const whole = openQueues(redis.target, { onError: () => undefined, settings: { max_result_bytes: 1e9 } });
    for (let index = 0; index < WHOLE; index += 1) await deliver(whole, "results-whole", resultOf(`whole-${index}`, { response }), store);
    await whole.close();
    await new Promise((resolve) => setTimeout(resolve, 10_500)); // until new queues are looked for
  }

  /** With what Redis says of itself: how long its slowest command kept it, and its slowest fsync, before which nobody is answered. */
  async function pinged(name: string, meanwhile: () => Promise<unknown>): Promise<void> {
    await queues.redis.config("SET", "latency-monitor-threshold", "1");
    await queues.redis.latency("RESET");
    const times = await pingTimes(redis.target, meanwhile);
    const slowest = (await queues.redis.latency("LATEST")) as [event: string, at: number, last: number, most: number][];
    const mostOf = (pattern: RegExp): number =>
      Math.max(0, ...slowest.filter(([event]) => pattern.test(event)).map(([, , , most]) => most));
    for (const [words, value] of [
      ["p50", atPercent(times, 50)],
      ["p99", atPercent(times, 99)],
      ["most", Math.max(...times)],
      ["slowest command of Redis", mostOf(/command/)],
      ["slowest fsync", mostOf(/fsync/)],
    ] as const)
      note(`PING while ${name}, ${words}, ms`, value);
  }

  async function clean(): Promise<void> {
    const env = { PATH: process.env["PATH"] ?? "", HOME: dir, REDIS_URL: redisUrl };
    const child = spawn(process.execPath, [CLI, "clean", "--older-than", "0"], { stdio: ["ignore", "ignore", "inherit"], env });
    const [code] = (await once(child, "exit")) as [number | null];
    if (code !== 0) throw new Error(`rollcall clean ended with ${code}`);
  }
}

async function signIn(origin: string, key: string): Promise<string> {
  const body = new URLSearchParams({ key });
  const answer = await fetch(`${origin}/sign-in`, {
    method: "POST",
    headers: { "sec-fetch-site": "same-origin" },
    body,
    redirect: "manual",
  });
  return answer.headers.get("set-cookie")?.split(";")[0] ?? "";
}

/** Bytes of the answer. Throws when it is none that a page could use. */
async function asked(origin: string, path: string, cookie: string): Promise<number> {
  const answer = await fetch(origin + path, { headers: { cookie } });
  const { byteLength } = await answer.arrayBuffer();
  if (answer.status !== 200) throw new Error(`${path} answered ${answer.status}`);
  return byteLength;
}
