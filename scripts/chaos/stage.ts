// SPDX-License-Identifier: Apache-2.0
import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { startBrokenServer } from "../../examples/stand-ins/office-tools.ts";
import { startTestRedis, type TestRedis } from "../../test/support/redis.ts";
import { mountSmallDisk } from "./disk.ts";
import type { Rig } from "./faults.ts";
import { breakGuard, copyProgram, type GuardName } from "./guards.ts";
import { startChaosModel, type ChaosModel } from "./model.ts";
import { startChaosOffice, type ChaosOffice } from "./office.ts";
import { LOCK_MS } from "./schedule.ts";
import { newSecrets, type ChaosSecrets } from "./secrets.ts";
import { chaosTasks, type ChaosTask } from "./tasks.ts";

/** Directories of a run. Everything but `given` is searched for secrets. */
export interface Places {
  root: string;
  /** What the run is given: tasks with their tokens, settings, the program. */
  given: string;
  out: string;
  artifacts: string;
  state: string;
  /** Owner records of sandboxes. */
  records: string;
  runtime: string;
  temporary: string;
  logs: string;
}

/** Everything around the program that is put to the test. */
export interface Stage {
  places: Places;
  secrets: ChaosSecrets;
  tasks: ChaosTask[];
  model: ChaosModel;
  office: ChaosOffice;
  redis: TestRedis;
  redisUrl: string;
  disk: Rig["disk"];
  /** The built program. */
  dist: string;
}

export interface StageOptions {
  tasks: number;
  seed: number;
  guard: GuardName | null;
  /** null = a temporary directory, removed at the end. */
  keep: string | null;
}

const DIST = fileURLToPath(new URL("../../", import.meta.url));

/** Files and servers that the run needs. `undo` gets what takes each away again, also when this throws. */
export async function openStage(options: StageOptions, undo: (() => Promise<unknown>)[]): Promise<Stage> {
  const root = options.keep === null ? await mkdtemp(join(tmpdir(), "chaos-")) : resolve(options.keep);
  if (options.keep !== null && (await readdir(root).catch(() => [])).length > 0)
    throw new Error(`${root} is not empty: what an earlier run kept would be judged too`);
  if (options.keep === null) undo.push(() => rm(root, { recursive: true, force: true }));
  const places = placesIn(root);
  for (const path of [places.given, places.state, places.runtime, places.temporary, places.logs]) {
    await mkdir(path, { recursive: true, mode: 0o700 });
  }
  const secrets = newSecrets();
  const model = await startChaosModel(secrets.modelKey);
  undo.push(() => model.close());
  const office = await startChaosOffice(secrets.core);
  undo.push(() => office.close());
  const redis = await startTestRedis({ tcp: { password: secrets.redisPassword } });
  undo.push(() => redis.stop());
  if (redis.target.kind !== "url") throw new Error("Redis must listen on TCP");
  const disk = await mountSmallDisk(places.artifacts, 64 + options.tasks);
  if (disk.disk !== null) undo.push(() => disk.disk.close());

  const down = await startBrokenServer("refuses");
  const tasks = chaosTasks({
    seed: options.seed,
    count: options.tasks,
    officeUrl: office.url,
    downUrl: down.url,
    canaryOf: secrets.canaryOf,
    mintToken: (taskId) => office.mintToken(secrets.sessionOf(taskId)),
  });
  await writeFile(join(places.given, "tasks.jsonl"), tasks.map(({ row }) => `${JSON.stringify(row)}\n`).join(""));
  await writeFile(join(places.given, "rollcall.toml"), SETTINGS);
  const dist = options.guard === null ? DIST : await programWithout(options.guard, join(places.given, "program"));
  return { places, secrets, tasks, model, office, redis, redisUrl: redis.target.url, disk, dist };
}

function placesIn(root: string): Places {
  const at = (name: string): string => join(root, name);
  return {
    root,
    given: at("given"),
    out: at("out"),
    artifacts: at("artifacts"),
    state: at("state"),
    records: at("state/rollcall/worker/sandboxes"),
    runtime: at("run"),
    temporary: at("tmp"),
    logs: at("logs"),
  };
}

/** A copy of the built program without one guard. */
async function programWithout(guard: GuardName, copy: string): Promise<string> {
  await mkdir(copy);
  const dist = await copyProgram(DIST, copy);
  breakGuard(dist, guard);
  return dist;
}

/** Short times, so that a claim is lost within a run of minutes. The disk that is filled is not the one that is watched. */
const SETTINGS = `drain_seconds = 2
log_level = "info"
[queue]
lock_duration_ms = ${LOCK_MS}
lock_renew_ms = ${LOCK_MS * 0.3}
stalled_interval_ms = 1000
[floors]
disk_mb = 0
`;
