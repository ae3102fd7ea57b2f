// SPDX-License-Identifier: Apache-2.0
import { join } from "node:path";
import type { Environment } from "../config/load.ts";
import type { Settings } from "../config/settings.ts";
import { OUTPUT_FILES } from "../rollout/output-dir.ts";
import { aborted } from "../rollout/waiting.ts";
import { startLocalWorker } from "./local-worker.ts";
import { prepareMachine } from "./machine.ts";
import { stopSignals } from "./signals.ts";
import { openStation } from "./station.ts";

/** Takes activations until SIGTERM or SIGINT, or until its embedded Redis is gone for good. Throws RollcallError. */
export async function runWorker({ settings, env, outDir }: { settings: Settings; env: Environment; outDir: string | null }): Promise<void> {
  const machine = await prepareMachine(settings, env);
  const station = await openStation({
    settings,
    env,
    outDir,
    artifacts: outDir === null ? null : join(outDir, OUTPUT_FILES.artifacts),
    level: settings.log_level ?? "info",
    destination: process.stderr,
  });
  const stop = stopSignals();
  try {
    const worker = await startLocalWorker(station, machine, { settings, concurrency: settings.concurrency });
    station.log.info({ concurrency: settings.concurrency, codex: machine.codex.version }, "worker started");
    try {
      await Promise.race([aborted(stop.signal), station.lost]);
    } finally {
      const { drain_seconds, drain_then } = settings;
      station.log.info({ drain_seconds, drain_then }, "worker stops: takes nothing new");
      await Promise.race([worker.stop({ now: false, drains: true }), aborted(stop.now).then(() => worker.stop({ now: true }))]);
    }
  } finally {
    stop.dispose();
    await station.close();
  }
}
