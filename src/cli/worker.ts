// SPDX-License-Identifier: Apache-2.0
import { join, resolve } from "node:path";
import { Command } from "commander";
import type { Environment } from "../config/load.ts";
import type { Settings } from "../config/settings.ts";
import { OUTPUT_FILES } from "../rollout/output-dir.ts";
import { aborted } from "../rollout/waiting.ts";
import { startLocalWorker } from "./local-worker.ts";
import { prepareMachine } from "./machine.ts";
import { settingsFrom, withWorkerFlags, type SettingsFlags } from "./settings-flags.ts";
import { stopSignals } from "./signals.ts";
import { openStation } from "./station.ts";

export function workerCommand(): Command {
  const command = new Command("worker")
    .description("Take activations from the queue until told to stop (SIGTERM: hands back what runs; twice: at once).")
    .option("--out <dir>", "join the embedded Redis of a run's output directory, instead of REDIS_URL");
  return withWorkerFlags(command).action(async (flags: SettingsFlags & { out?: string }) => {
    const outDir = flags.out === undefined ? null : resolve(flags.out);
    await runWorker({ settings: await settingsFrom(flags), env: process.env, outDir });
  });
}

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
      station.log.info("worker stops: what runs is handed back");
      await Promise.race([worker.stop({ now: false }), aborted(stop.now).then(() => worker.stop({ now: true }))]);
    }
  } finally {
    stop.dispose();
    await station.close();
  }
}
