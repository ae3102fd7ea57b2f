// SPDX-License-Identifier: Apache-2.0
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Worker } from "bullmq";
import { vi } from "vitest";
import { OFFICE_SERVER } from "../../examples/stand-ins/office-jobs/job.ts";
import { startOfficeTools } from "../../examples/stand-ins/office-tools.ts";
import { mcp, say, scriptLine, shell, step } from "../../examples/stand-ins/script.ts";
import { SESSION_TOKEN_HEADER } from "../../examples/stand-ins/session-tokens.ts";
import { startFleet } from "../../scripts/chaos/fleet.ts";
import { readLines } from "../../scripts/chaos/gather.ts";
import { copyProgram } from "../../scripts/chaos/guards.ts";
import { findLeftovers } from "../../scripts/chaos/leftovers.ts";
import { startChaosModel } from "../../scripts/chaos/model.ts";
import { filesHolding } from "../../scripts/chaos/secrets.ts";
import { readJson, startWatch } from "../../scripts/chaos/watch.ts";
import { captureKey } from "../../src/contract/identity.ts";
import type { ActivationResult, Attempt } from "../../src/contract/result.ts";
import { finalJobId, keys, PREFIX } from "../../src/queue/names.ts";
import { openQueues, type Queues } from "../../src/queue/queues.ts";
import { findOnPath } from "../../src/redis/binary.ts";
import { redisOptions } from "../../src/redis/connect.ts";
import { allPids } from "../../src/sandbox/processes.ts";
import { insertKillPoints } from "./kill-points.ts";
import { startTestRedis } from "./redis.ts";

/** What became of one activation whose process was to be killed. */
export interface Killed {
  /** kill-<point>.<n> */
  name: string;
  /** The point was reached. */
  died: boolean;
  /** result.json */
  result: ActivationResult | null;
  /** How often it is in results.jsonl, in the results queue, and came to its consumer. */
  lines: number;
  delivered: number;
  consumed: number;
  /** Codex sessions that asked the model, by attempt. */
  sessions: { attempt: number; count: number }[];
  /** attempt.json of each attempt that has one. */
  saved: Attempt[];
  charged: number;
}

/** What became of all of them. */
export interface KillRun {
  killed: Map<string, Killed>;
  /** Of the whole run, whatever kind; empty when nothing is left. */
  left: string[];
  /** Files, of those that outlive a run, that hold a secret. */
  secrets: string[];
}

export interface KillRunOptions {
  /** What the activations are called: kill-<point>.<n>. */
  names: readonly string[];
  workers: number;
  /** Changes the copy of the program, to show that what is broken would be noticed. */
  change?: (dist: string) => void;
  timeoutMs: number;
}

const DIST = fileURLToPath(new URL("../../dist/", import.meta.url));
const RESULTS = "results-kill";
const MODEL_KEY = "stand-in-key-of-the-kill-points";
/** Short, so that what a killed worker held is soon another's; long enough for a busy machine. */
const SETTINGS = `[queue]
lock_duration_ms = 3000
lock_renew_ms = 700
stalled_interval_ms = 500
[breaker]
mode = "off"
[floors]
disk_mb = 0
memory_mb = 0
`;

/** Runs activations with the real program while its processes are killed as their names say; whoever dies is started again. */
export async function runWithKills(options: KillRunOptions): Promise<KillRun> {
  const undo: (() => unknown)[] = [];
  try {
    return await run(options, undo);
  } finally {
    for (const step of undo.reverse()) await step();
  }
}

async function run({ names, workers, change, timeoutMs }: KillRunOptions, undo: (() => unknown)[]): Promise<KillRun> {
  const before = new Set(allPids());
  const root = await mkdtemp(join(tmpdir(), "rollcall-kill-"));
  undo.push(() => rm(root, { recursive: true, force: true }));
  const at = (name: string): string => join(root, name);
  for (const name of ["program", "state", "run", "tmp"]) mkdirSync(at(name), { mode: 0o700 });
  const dist = await copyProgram(DIST, at("program"));
  insertKillPoints(dist);
  change?.(dist);

  const model = await startChaosModel(MODEL_KEY);
  undo.push(() => model.close());
  const office = await startOfficeTools();
  undo.push(() => office.close());
  const redis = await startTestRedis({ tcp: { password: "pw-of-the-kill-points" } });
  undo.push(() => redis.stop());
  if (redis.target.kind !== "url") throw new Error("the workers are told of Redis by URL");
  const tokens = names.map((name) => office.mintToken(name));
  writeFileSync(at("tasks.jsonl"), names.map((name, index) => `${JSON.stringify(rowOf(name, office.url, tokens[index]!))}\n`).join(""));
  writeFileSync(at("rollcall.toml"), SETTINGS);

  const queues = openQueues(redis.target, { onError: () => undefined });
  undo.push(() => queues.close());
  const consumed: string[] = [];
  const consumer = new Worker(RESULTS, (job) => Promise.resolve(void consumed.push(job.id!)), {
    connection: redisOptions(redis.target, "blocking"),
    prefix: PREFIX,
  });
  consumer.on("error", () => undefined);
  undo.push(() => consumer.close());

  const records = at("state/rollcall/worker/sandboxes");
  const watch = startWatch({ records, artifacts: at("artifacts"), secret: "no command line is looked at", except: () => redis.pid });
  undo.push(() => watch.stop());
  const path = process.env["PATH"] ?? "";
  const config = ["--config", at("rollcall.toml")];
  const fleet = await startFleet({
    dist,
    logs: at("logs"),
    env: {
      PATH: path,
      HOME: "/nonexistent",
      REDIS_URL: redis.target.url,
      ROLLCALL_SECRET_KEY: randomBytes(32).toString("base64"),
      ROLLCALL_ARTIFACTS_DIR: at("artifacts"),
      XDG_STATE_HOME: at("state"),
      XDG_RUNTIME_DIR: at("run"),
      TMPDIR: at("tmp"),
      OPENAI_API_KEY: MODEL_KEY,
    },
    workers,
    workerArgs: [...config, "--concurrency", "1"],
    producerArgs: [
      at("tasks.jsonl"),
      ...config,
      "--out",
      at("out"),
      "--model",
      "stand-in",
      "--model-base-url",
      model.captureBaseUrl,
      "--retry",
      "none",
      "--probe",
      "0",
    ],
    setpriv: await findOnPath(["setpriv"], path),
    onUnexpectedEnd: () => undefined,
    againMs: 0,
    mostEnds: 10 * names.length,
  });
  undo.push(() => fleet.stop());
  const runId = await vi.waitFor(() => runIdIn(at("out"), at("logs")), { timeout: 60_000 });
  const idOf = (name: string): string => `act-${runId}-${name}`;
  await untilAllEnded(queues, names.map(idOf), consumed, timeoutMs);
  await Promise.race([fleet.done, new Promise((resolve) => setTimeout(resolve, 30_000).unref())]);
  const delivered = (await queues.results(RESULTS).getJobs()).map(({ id }) => id!);
  await fleet.stop();
  watch.stop();

  const lines = existsSync(at("out/results.jsonl")) ? readLines(at("out/results.jsonl")) : [];
  const died = new Set(readdirSync(join(dist, "died")));
  const killed = new Map<string, Killed>();
  for (const name of names) {
    const id = idOf(name);
    const sessions = [0, 1, 2, 3].map((attempt) => ({
      attempt,
      count: model.calls.filter(({ capture_key }) => capture_key === captureKey({ rollout_id: name, attempt })).length,
    }));
    killed.set(name, {
      name,
      died: died.has(name),
      result: readJson(join(at("artifacts"), id, "result.json")) as ActivationResult | null,
      lines: lines.filter(({ task_id }) => task_id === name).length,
      delivered: delivered.filter((each) => each === id).length,
      consumed: consumed.filter((each) => each === id).length,
      sessions: sessions.filter(({ count }) => count > 0),
      saved: savedAttempts(join(at("artifacts"), id)),
      charged: Number((await queues.redis.hget(keys.ledger(id), "charged")) ?? 0),
    });
  }
  const searched = [...["state", "run", "tmp", "logs", "out", "artifacts"].map(at).filter(existsSync), redis.dir];
  const needles = [MODEL_KEY, ...tokens].map((secret) => Buffer.from(secret));
  const secrets = (await Promise.all(searched.map((place) => filesHolding(place, needles)))).flat();
  const sandboxes = watch.sandboxes.map(({ record }) => record);
  const left = await findLeftovers({ root, records, temporary: at("tmp"), sandboxes, before, pids: fleet.pids });
  return { killed, left: Object.entries(left).flatMap(([kind, list]) => list.map((each) => `${kind}: ${each}`)), secrets };
}

/** Throws with what was logged last when the run has not begun. */
function runIdIn(out: string, logs: string): string {
  const manifest = readJson(join(out, "manifest.json")) as { run_id: string } | null;
  if (manifest !== null) return manifest.run_id;
  throw new Error(
    `the run did not begin: ${readdirSync(logs)
      .map((name) => readFileSync(join(logs, name), "utf8").slice(-500))
      .join("\n")}`,
  );
}

/** A task with a command, a deliverable and a tool call of its own; without a deliverable it would not be told from one that did nothing. */
function rowOf(name: string, url: string, token: string): object {
  const steps = [
    step(shell(`echo ${name} > report.md`)),
    step(mcp(OFFICE_SERVER, "finish", { reason: "The report is written.", paths: ["{{workdir}}/report.md"] })),
    step(say("The report is written.")),
  ];
  return {
    task_id: { taskset: "kill", task_id: name },
    input: `Write a report.\n${scriptLine({ steps })}`,
    tool_grants: [
      {
        type: "mcp",
        name: OFFICE_SERVER,
        required: true,
        connection: { transport: "streamable_http", url, headers: { [SESSION_TOKEN_HEADER]: token } },
      },
    ],
    required_tools: ["finish"],
    max_attempts: 5,
    reply_to: RESULTS,
    outputs: { paths: ["*.md"] },
  };
}

/** What has not ended by then shows in what is looked at afterwards. */
async function untilAllEnded(queues: Queues, ids: readonly string[], consumed: readonly string[], timeoutMs: number): Promise<void> {
  const until = performance.now() + timeoutMs;
  for (;;) {
    const jobs = await Promise.all(ids.map((id) => queues.final.getJob(finalJobId(id))));
    const open = jobs.filter((job) => job?.finishedOn === undefined).length;
    if ((open === 0 && ids.every((id) => consumed.includes(id))) || performance.now() > until) return;
    await new Promise((resolve) => setTimeout(resolve, 300));
  }
}

function savedAttempts(directory: string): Attempt[] {
  if (!existsSync(directory)) return [];
  return readdirSync(directory)
    .filter((name) => name.startsWith("attempt-"))
    .flatMap((name) => {
      const path = join(directory, name, "attempt.json");
      return existsSync(path) ? [JSON.parse(readFileSync(path, "utf8")) as Attempt] : [];
    })
    .sort((a, b) => a.attempt - b.attempt);
}
