// SPDX-License-Identifier: Apache-2.0
import { Writable } from "node:stream";
import type { Environment } from "../config/load.ts";
import type { Settings } from "../config/settings.ts";
import { requireSameStore } from "../queue/worker-lease.ts";
import type { ResourcesServer } from "../resources/server.ts";
import type { Fleet } from "../rollout/fleet.ts";
import type { OutputDir } from "../rollout/output-dir.ts";
import { queueFleet } from "../rollout/queue-fleet.ts";
import { resourcesFleet } from "../rollout/resources-fleet.ts";
import { startLocalWorker } from "./local-worker.ts";
import type { Machine } from "./machine.ts";
import { openStation } from "./station.ts";
import type { Terminal } from "./terminal.ts";

/** The fleet of a run: its queue and store, and workers in this process when `workers` is more than 0. */
export async function openFleet(options: {
  out: OutputDir;
  runId: string;
  settings: Settings;
  env: Environment;
  workers: number;
  /** That seeds and scores the run's rollouts; null = none. */
  server: ResourcesServer | null;
  machine: () => Promise<Machine>;
  terminal: Terminal;
}): Promise<Fleet> {
  const { out, runId, settings, env, workers, server } = options;
  const station = await openStation({
    settings,
    env,
    outDir: out.path,
    runId,
    artifacts: out.file("artifacts"),
    level: settings.log_level ?? "warn",
    service: "rollcall-run",
    destination: linesTo(options.terminal),
  });
  try {
    await requireSameStore(station.queues, station.store.id);
  } catch (error) {
    await station.close();
    throw error;
  }
  const fleet = queueFleet({
    ...station,
    runId,
    startWorkers: workers === 0 ? null : async () => startLocalWorker(station, await options.machine(), { settings, concurrency: workers }),
  });
  return server === null ? fleet : resourcesFleet(fleet, { ...station, server });
}

/** Log lines go where a person looks, without breaking the line that is redrawn. */
function linesTo(terminal: Terminal): Writable {
  return new Writable({
    write(chunk: Buffer, _encoding, done) {
      terminal.line(chunk.toString().trimEnd());
      done();
    },
  });
}
