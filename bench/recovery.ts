// SPDX-License-Identifier: Apache-2.0
import { spawn, type ChildProcess } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import Table from "cli-table3";
import { startModelServer } from "../examples/stand-ins/model-server.ts";
import { say, shell, step } from "../examples/stand-ins/script.ts";
import { parseSecretKeys } from "../src/activation/secret-keys.ts";
import { activationSchema } from "../src/contract/activation.ts";
import { enqueueActivations } from "../src/queue/enqueue.ts";
import { openQueues } from "../src/queue/queues.ts";
import { startTestRedis } from "../test/support/redis.ts";

/**
 * How long it takes until work goes on after something died, beside what the settings say. Real workers, Codex, Redis and
 * sandboxes. The first row is the floor: nothing dies, from enqueue to the first model call.
 */
const { values: flags } = parseArgs({
  options: {
    rounds: { type: "string", default: "5" },
    "lock-ms": { type: "string", default: "6000" },
    "renew-ms": { type: "string", default: "2000" },
    "stalled-ms": { type: "string", default: "1500" },
  },
});
const [rounds, lock, renew, stalled] = [flags.rounds, flags["lock-ms"], flags["renew-ms"], flags["stalled-ms"]].map(Number) as [
  number,
  number,
  number,
  number,
];
const WORKER = fileURLToPath(new URL("../workers/activation.js", import.meta.url));
const OUTAGE_MS = 3_000;
const MOST_MS = 120_000;

const scratch = await mkdtemp(join(tmpdir(), "rollcall-recovery-"));
const model = await startModelServer({
  apiKey: "k",
  replyDelayMs: 0,
  scriptFor: ({ attempt, prompt }) => ({
    steps: [step(shell(attempt === 0 ? prompt.replace("run: ", "") : "true")), step(say("Done."))],
  }),
});
const redis = await startTestRedis({ tcp: { password: randomBytes(9).toString("hex") } });
const queues = openQueues(redis.target, { onError: () => undefined });
const secretKey = randomBytes(32).toString("base64");
const workers = new Set<ChildProcess>();
let made = 0;

async function worker(): Promise<ChildProcess> {
  const env = {
    PATH: process.env["PATH"] ?? "",
    HOME: scratch,
    REDIS_URL: redis.target.kind === "url" ? redis.target.url : "",
    ROLLCALL_CONFIG: join(scratch, "rollcall.toml"),
    ROLLCALL_SECRET_KEY: secretKey,
    ROLLCALL_ARTIFACTS_DIR: join(scratch, "store"),
    OPENAI_API_KEY: "k",
  };
  const child = spawn(process.execPath, [WORKER], { stdio: ["ignore", "ignore", "pipe"], env });
  workers.add(child);
  await once(child.stderr, "data"); // its first line: it takes activations
  child.stderr.resume();
  return child;
}

async function end(child: ChildProcess, signal: "SIGKILL" | "SIGTERM"): Promise<void> {
  const ended = once(child, "exit");
  child.kill(signal);
  await ended;
  workers.delete(child);
}

/** Enqueues a session whose first attempt runs `command`; answers its capture key. */
async function add(command: string): Promise<string> {
  const id = `act-${++made}`;
  const activation = activationSchema.parse({
    activation_id: id,
    run_id: "recovery",
    episode_id: { rollout_id: `r${made}` },
    task_id: { taskset: "bench", task_id: id },
    input: `run: ${command}`,
    model: { name: "m", base_url: model.captureBaseUrl },
  });
  await enqueueActivations(queues, [activation], { keys: parseSecretKeys(secretKey) });
  return `r${made}`;
}

async function until(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
  for (const since = performance.now(); !(await condition()); await delay(10))
    if (performance.now() - since > MOST_MS) throw new Error(`${what}: not within ${MOST_MS / 1_000} s`);
}
const called = (captureKey: string): Promise<void> => until(`a model call of ${captureKey}`, () => model.log.countOf(captureKey) > 0);
const delivered = (): Promise<void> => until("a result", async () => (await queues.results("results").getJob(`act-${made}`)) !== undefined);

/** Each answers how many ms it took; it leaves no session and no worker. */
const scenarios: { name: string; expected: string; run: () => Promise<number> }[] = [
  {
    name: "nothing dies: enqueue to the first model call",
    expected: "",
    async run() {
      const one = await worker();
      const since = performance.now();
      await called(await add("true"));
      return finish(performance.now() - since, one);
    },
  },
  {
    name: "kill -9 of a worker: to the next attempt's first model call",
    expected: `${lock - renew} to ${lock + stalled} ms, and the floor`,
    async run() {
      const one = await worker();
      const key = await add("sleep 600");
      await called(key);
      const other = await worker();
      const since = performance.now();
      await end(one, "SIGKILL");
      await called(`${key}-a1`);
      return finish(performance.now() - since, other);
    },
  },
  {
    name: "SIGTERM to a worker, drain_seconds 0: to the next attempt's first model call",
    expected: "the end of Codex, and the floor",
    async run() {
      const one = await worker();
      const key = await add("sleep 600");
      await called(key);
      const other = await worker();
      const since = performance.now();
      one.kill("SIGTERM");
      await called(`${key}-a1`);
      const took = performance.now() - since;
      if (one.exitCode === null) await once(one, "exit");
      workers.delete(one);
      return finish(took, other);
    },
  },
  {
    name: `Redis killed for ${OUTAGE_MS} ms: from its return to the next session's first model call`,
    expected: "at most 2000 ms (reconnecting), and the floor",
    async run() {
      const one = await worker();
      await redis.kill9();
      await delay(OUTAGE_MS);
      await redis.restart();
      const since = performance.now();
      await called(await add("true"));
      return finish(performance.now() - since, one);
    },
  },
  {
    name: `Redis killed as a session ends, for ${OUTAGE_MS} ms: from its return to the result in its queue`,
    expected: "at most 2000 ms (reconnecting)",
    async run() {
      const one = await worker();
      await called(await add("sleep 1"));
      await redis.kill9();
      await delay(OUTAGE_MS);
      await redis.restart();
      const since = performance.now();
      await delivered();
      return finish(performance.now() - since, one);
    },
  },
];

async function finish(took: number, one: ChildProcess): Promise<number> {
  await delivered();
  await end(one, "SIGTERM");
  return took;
}

try {
  await mkdir(join(scratch, "store"));
  const settings = `log_level = "info"\nkey_origins = { OPENAI_API_KEY = ["*"] }\n[queue]\nlock_duration_ms = ${lock}\nlock_renew_ms = ${renew}\nstalled_interval_ms = ${stalled}\n`;
  await writeFile(join(scratch, "rollcall.toml"), `${settings}[floors]\ndisk_mb = 0\n`);
  const table = new Table({ head: ["what", "median ms", "least", "most", "from the settings"] });
  for (const { name, expected, run } of scenarios) {
    const took: number[] = [];
    for (let round = 0; round < rounds; round++) took.push(Math.round(await run()));
    took.sort((a, b) => a - b);
    table.push([name, took[Math.floor(took.length / 2)], took[0], took.at(-1), expected]);
  }
  console.log(`lock ${lock} ms, renewed every ${renew} ms, lost claims looked for every ${stalled} ms; ${rounds} rounds`);
  console.log(table.toString());
} finally {
  for (const child of workers) child.kill("SIGKILL");
  await queues.close();
  await redis.stop();
  await model.close();
  await rm(scratch, { recursive: true, force: true });
}
