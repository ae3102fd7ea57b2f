// SPDX-License-Identifier: Apache-2.0
import { randomBytes } from "node:crypto";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import Table from "cli-table3";
import { openDirectoryStore } from "../src/artifacts/directory-store.ts";
import { openQueues, type Queues } from "../src/queue/queues.ts";
import { startTestRedis } from "../test/support/redis.ts";
import { startApiProcess, type ApiProcess } from "./api-load/api-process.ts";
import { atPercent } from "./api-load/percentiles.ts";
import { lookAtPage } from "./run-page/look.ts";
import { endsOf, RUN, seed } from "./run-page/seed.ts";

const HELP = `npm run bench:run-page -- [options]

A run of many activations as its page and the API show it: a real Redis, a process of the API, and headless Chromium. Ends are
recorded by the function that workers use. Prints how long each answer takes, how large it is, and how Redis answers meanwhile.

  --rows N        activations that have ended (default 10000)
  --open N        that wait (200)
  --workers N     that they ran on (12)
  --shots DIR     keep screenshots there
  --keep          stay up until Ctrl-C, to look at it
`;
const { values: flags } = parseArgs({
  options: {
    rows: { type: "string", default: "10000" },
    open: { type: "string", default: "200" },
    workers: { type: "string", default: "12" },
    shots: { type: "string" },
    keep: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});
const MAX_PINGS = 100_000;

if (flags.help) process.stdout.write(HELP);
else await bench();

async function bench(): Promise<void> {
  const dir = await mkdtemp(join(tmpdir(), "rollcall-run-page-"));
  const redis = await startTestRedis({ tcp: { password: randomBytes(16).toString("hex") }, appendonly: false });
  const [secretKey, key] = [randomBytes(32).toString("base64"), randomBytes(24).toString("base64url")];
  const queues = openQueues(redis.target, { onError: (error) => console.error(error.message) });
  try {
    await mkdir(join(dir, "store"));
    const api = await startApiProcess({
      entry: fileURLToPath(new URL("../workers/api.js", import.meta.url)),
      dir,
      redisUrl: urlOf(redis.target),
      key,
      secretKey,
    });
    try {
      const store = await openDirectoryStore(join(dir, "store"));
      const perEnd = await seed(queues, store, {
        ends: endsOf(Number(flags.rows), Number(flags.workers)),
        open: Number(flags.open),
        secretKey,
      });
      const table = new Table({ head: ["what", "figure"] });
      table.push(["one end, recorded with its row, ms", perEnd.toFixed(2)]);
      table.push(["Redis, memory of a row, bytes", String(Math.round((await rowBytes(queues)) / Number(flags.rows)))]);
      table.push(...(await looks(api, key, queues)));
      console.log(table.toString());
      if (!flags.keep) return;
      console.log(`${api.origin}/runs/${RUN}   key: ${key}`);
      await new Promise((resolve) => process.once("SIGINT", resolve));
    } finally {
      await api.stop();
    }
  } finally {
    await queues.close();
    await redis.stop();
    await rm(dir, { recursive: true, force: true });
  }
}

/** Answers and the page, with Redis watched all the while. */
async function looks(api: ApiProcess, key: string, queues: Queues): Promise<[what: string, figure: string][]> {
  const figures: [string, string][] = [];
  const pinged = pings(queues);
  try {
    for (const path of [`/v1/runs/${RUN}`, `/v1/runs/${RUN}/rows?limit=1000000`, `/v1/runs/${RUN}/rows?state=waiting`, "/v1/runs"]) {
      const { ms, bytes } = await answer(api.origin + path, key);
      figures.push([`GET ${path}, median of 5, ms`, ms.toFixed(0)], [`GET ${path}, KB`, (bytes / 1_000).toFixed(0)]);
    }
    figures.push(...Object.entries(await lookAtPage({ origin: api.origin, key, runId: RUN, shots: flags.shots ?? null })));
  } finally {
    await pinged.stop();
  }
  figures.push(["Redis PING meanwhile, p99 ms", atPercent(pinged.times, 99).toFixed(1)]);
  figures.push(["the API's memory, peak MB", String((await api.memory()).peak)]);
  return figures;
}

async function rowBytes({ redis }: Queues): Promise<number> {
  return Number(await redis.call("MEMORY", "USAGE", `{rollcall}:rows:${RUN}`, "SAMPLES", "1000"));
}

async function answer(url: string, key: string): Promise<{ ms: number; bytes: number }> {
  const times: number[] = [];
  let bytes = 0;
  for (let count = 0; count < 5; count++) {
    const since = performance.now();
    bytes = 0;
    const { body } = await fetch(url, { headers: { authorization: `Bearer ${key}` } });
    for await (const chunk of body!) bytes += (chunk as Uint8Array).length;
    times.push(performance.now() - since);
  }
  return { ms: atPercent(times, 50), bytes };
}

/** How long Redis takes to answer another connection, until it is stopped. */
function pings(queues: Queues): { times: readonly number[]; stop: () => Promise<void> } {
  const own = queues.redis.duplicate();
  const times: number[] = [];
  let over = false;
  const asking = (async () => {
    // oxlint-disable-next-line no-unmodified-loop-condition -- stop() changes it
    while (!over && times.length < MAX_PINGS) {
      const since = performance.now();
      await own.ping();
      times.push(performance.now() - since);
      await delay(5);
    }
  })();
  return {
    times,
    async stop() {
      over = true;
      await asking;
      own.disconnect();
    },
  };
}

function urlOf(target: Parameters<typeof openQueues>[0]): string {
  if (target.kind !== "url") throw new Error("the bench's Redis listens on TCP");
  return target.url;
}
