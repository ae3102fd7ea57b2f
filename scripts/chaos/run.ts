// SPDX-License-Identifier: Apache-2.0
import { cp } from "node:fs/promises";
import { dirname, join } from "node:path";
import { stopSignals } from "../../src/cli/signals.ts";
import { openQueues, type Queues } from "../../src/queue/queues.ts";
import { findOnPath } from "../../src/redis/binary.ts";
import { allPids } from "../../src/sandbox/processes.ts";
import { aborted } from "../../src/rollout/waiting.ts";
import { reapDead } from "../../src/sandbox/reap.ts";
import type { RunFacts } from "./facts.ts";
import { startFleet, type Fleet, type FleetParts } from "./fleet.ts";
import { finishesOf, readEnds, readLines, readRuns } from "./gather.ts";
import { findLeftovers } from "./leftovers.ts";
import { play } from "./play.ts";
import type { Injection } from "./schedule.ts";
import { filesHolding, missedControls, needlesOf } from "./secrets.ts";
import { openStage, type Stage, type StageOptions } from "./stage.ts";
import { RESULTS_QUEUE } from "./tasks.ts";
import { startWatch, type Watch } from "./watch.ts";

export interface ChaosOptions extends StageOptions {
  workers: number;
  concurrency: number;
  schedule: readonly Injection[];
  say: (line: string) => void;
}

/** A real run under faults. Ends everything that it started, also at SIGINT or SIGTERM. Answers what the oracle looks at. */
export async function runChaos(options: ChaosOptions): Promise<RunFacts> {
  const { say, tasks, schedule } = options;
  const undo: (() => Promise<unknown>)[] = [];
  const stop = stopSignals();
  const stopped = aborted(stop.signal).then(() => Promise.reject(new Error("stopped by a signal")));
  stopped.catch(() => undefined); // it may come when nobody waits for it yet
  try {
    const before = new Set(allPids());
    const stage = await openStage(options, undo);
    const { places, secrets, redis, model, office, disk } = stage;
    undo.push(() => reapDead(dirname(places.records))); // what a run without its reaper leaves
    const watch = startWatch({ ...places, secret: secrets.core, except: () => redis.pid });
    undo.push(() => Promise.resolve(watch.stop()));
    const unexpected_ends: RunFacts["unexpected_ends"] = [];
    const fleet = await startFleet({
      ...(await fleetParts(stage, options)),
      onUnexpectedEnd(end) {
        say(`${end.who} ended by itself: ${end.detail}`);
        unexpected_ends.push(end);
      },
    });
    undo.push(() => fleet.stop());
    const queues = openQueues(redis.target, { onError: () => undefined });
    undo.push(() => queues.close());

    const cancels: RunFacts["cancels"] = [];
    const rig = { fleet, redis, model, office, disk, queues, watch, cancels };
    const played = await Promise.race([play(rig, { schedule, tasks, say }), stopped]);
    return {
      ...played,
      cancels,
      unexpected_ends,
      ...(await collect({ stage, watch, fleet, queues, before, kept: options.keep !== null })),
    };
  } finally {
    for (const step of undo.reverse()) await step().catch((error: unknown) => say(`clean-up failed: ${String(error)}`));
    stop.dispose();
  }
}

async function fleetParts(stage: Stage, { workers, concurrency }: ChaosOptions): Promise<Omit<FleetParts, "onUnexpectedEnd">> {
  const { places, secrets, model, dist, redisUrl } = stage;
  const path = process.env["PATH"] ?? "";
  const config = ["--config", join(places.given, "rollcall.toml")];
  const where = ["--out", places.out, "--model", "stand-in", "--model-base-url", model.captureBaseUrl];
  return {
    dist,
    logs: places.logs,
    env: {
      PATH: path,
      HOME: "/nonexistent",
      REDIS_URL: redisUrl,
      ROLLCALL_SECRET_KEY: secrets.deploymentKey,
      ROLLCALL_ARTIFACTS_DIR: places.artifacts,
      XDG_STATE_HOME: places.state,
      XDG_RUNTIME_DIR: places.runtime,
      TMPDIR: places.temporary,
      OPENAI_API_KEY: secrets.modelKey,
      ROLLCALL_MODEL_BASE_URL: model.captureBaseUrl,
    },
    workers,
    workerArgs: [...config, "--concurrency", String(concurrency)],
    // No second generations: a producer that is started again would make some of what could not begin.
    producerArgs: [join(places.given, "tasks.jsonl"), ...config, ...where, "--retry", "none", "--probe", "0"],
    setpriv: await findOnPath(["setpriv"], path),
  };
}

type Collected = Omit<RunFacts, "faults" | "stuck" | "cancels" | "unexpected_ends">;

/** The order matters: Redis is asked while it is there, files are searched when nobody writes, what is left is looked for last. */
async function collect(parts: {
  stage: Stage;
  watch: Watch;
  fleet: Fleet;
  queues: Queues;
  before: ReadonlySet<number>;
  kept: boolean;
}): Promise<Collected> {
  const { stage, watch, fleet, queues, before } = parts;
  const { places, secrets, tasks, office, redis, model, disk } = stage;
  await fleet.stop();
  watch.stop();
  const delivered = await deliveredTo(queues);
  const searched = [places.out, places.artifacts, places.logs, redis.dir];
  const more = [places.state, places.runtime, places.temporary];
  const found = await holding([...searched, ...more], needlesOf(secrets));
  const missed_controls = await missedControls(places.temporary, secrets, office.mintToken(secrets.sessionOf("control")));
  for (const [place, shown] of [
    ...[places.out, places.artifacts, redis.dir].map((path) => [path, "chaos-001"] as const),
    [places.logs, "worker started"] as const,
  ]) {
    // What stands there for all to see must be found by the same search.
    if ((await holding([place], [Buffer.from(shown)])).length === 0) missed_controls.push(`"${shown}" in ${place}`);
  }
  const collected = {
    tasks: tasks.map(({ task_id, kind, max_attempts }) => ({ task_id, kind, max_attempts })),
    lines: readLines(join(places.out, "results.jsonl")),
    ends: readEnds(places.artifacts, watch.ends),
    runs: readRuns(places.artifacts, watch, model.calls),
    finishes: finishesOf(office.calls),
    stalls: [...watch.stalls],
    delivered,
    secrets: { found: [...found, ...watch.shown], missed_controls },
  };
  await queues.close();
  await redis.stop();
  if (parts.kept && disk.disk !== null) await cp(places.artifacts, `${places.artifacts}-kept`, { recursive: true });
  await disk.disk?.close();
  const sandboxes = watch.sandboxes.map(({ record }) => record);
  return { ...collected, left: await findLeftovers({ ...places, sandboxes, before, pids: fleet.pids }) };
}

async function deliveredTo(queues: Queues): Promise<string[] | null> {
  try {
    const jobs = await queues.results(RESULTS_QUEUE).getJobs(["waiting", "prioritized", "delayed", "completed", "failed"]);
    return jobs.map(({ id }) => id ?? "");
  } catch {
    return null;
  }
}

async function holding(places: readonly string[], needles: readonly Buffer[]): Promise<string[]> {
  const found: string[] = [];
  for (const place of places) found.push(...(await filesHolding(place, needles)));
  return found;
}
