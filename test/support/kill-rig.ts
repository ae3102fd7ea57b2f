// SPDX-License-Identifier: Apache-2.0
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Worker } from "bullmq";
import { vi } from "vitest";
import { startFleet } from "../../scripts/chaos/fleet.ts";
import { findLeftovers } from "../../scripts/chaos/leftovers.ts";
import { filesHolding } from "../../scripts/chaos/secrets.ts";
import { readJson, startWatch } from "../../scripts/chaos/watch.ts";
import { finalJobId, keys, PREFIX } from "../../src/queue/names.ts";
import { openQueues, type Queues } from "../../src/queue/queues.ts";
import { findOnPath } from "../../src/redis/binary.ts";
import { redisOptions } from "../../src/redis/connect.ts";
import { allPids } from "../../src/sandbox/processes.ts";
import { gatherKilled, type Killed } from "./kill-outcome.ts";
import { openKillStage, RESULTS } from "./kill-stage.ts";

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
}

/** The longest that nothing ends on a busy machine: the producer alone is started six times before anything runs. */
const STUCK_MS = 300_000;

/** Runs activations with the real program while its processes are killed as their names say; whoever dies is started again. */
export async function runWithKills(options: KillRunOptions): Promise<KillRun> {
  const undo: (() => unknown)[] = [];
  try {
    return await run(options, undo);
  } finally {
    for (const step of undo.reverse()) await step();
  }
}

async function run({ names, workers, change }: KillRunOptions, undo: (() => unknown)[]): Promise<KillRun> {
  const before = new Set(allPids());
  const stage = await openKillStage(names, change ?? null, undo);
  const { root, at, dist, model, redis } = stage;
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
  const fleet = await startFleet({
    ...stage.fleet,
    workers,
    logs: at("logs"),
    setpriv: await findOnPath(["setpriv"], process.env["PATH"] ?? ""),
    onUnexpectedEnd: () => undefined,
    againMs: 0,
    mostEnds: 10 * names.length,
  });
  undo.push(() => fleet.stop());
  const runId = await vi.waitFor(() => runIdIn(at("out"), at("logs")), { timeout: 60_000 });
  const idOf = (name: string): string => `act-${runId}-${name}`;
  await untilAllEnded(queues, names.map(idOf), consumed);
  await Promise.race([fleet.done, new Promise((resolve) => setTimeout(resolve, 30_000).unref())]);
  const delivered = (await queues.results(RESULTS).getJobs()).map(({ id }) => id!);
  await fleet.stop();
  watch.stop();

  const calls = model.calls;
  const died = new Set(readdirSync(join(dist, "died")));
  const killed = new Map<string, Killed>();
  for (const name of names) {
    const id = idOf(name);
    const charged = Number((await queues.redis.hget(keys.ledger(id), "charged")) ?? 0);
    killed.set(name, gatherKilled({ name, id, died, out: at("out"), artifacts: at("artifacts"), delivered, consumed, calls, charged }));
  }
  const searched = [...["state", "run", "tmp", "logs", "out", "artifacts"].map(at).filter(existsSync), redis.dir];
  if ((await filesHolding(at("out"), [Buffer.from(names[0]!)])).length === 0) throw new Error("the search for secrets finds nothing");
  const needles = stage.secrets.map((secret) => Buffer.from(secret));
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

/** Gives up when nothing more ends for a long time, however slow the machine is; what has not ended shows in what is looked at afterwards. */
async function untilAllEnded(queues: Queues, ids: readonly string[], consumed: readonly string[]): Promise<void> {
  let left = ids.length;
  for (let changed = performance.now(); performance.now() - changed < STUCK_MS;) {
    const jobs = await Promise.all(ids.map((id) => queues.final.getJob(finalJobId(id))));
    const now = ids.filter((id, index) => jobs[index]?.finishedOn === undefined || !consumed.includes(id)).length;
    if (now === 0) return;
    if (now < left) changed = performance.now();
    left = now;
    await new Promise((resolve) => setTimeout(resolve, 300));
  }
}
