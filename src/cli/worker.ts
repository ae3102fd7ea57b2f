// SPDX-License-Identifier: Apache-2.0
import { resolve } from "node:path";
import { Command } from "commander";
import { settingsFrom, withWorkerFlags, type SettingsFlags } from "./settings-flags.ts";

export function workerCommand(): Command {
  const command = new Command("worker")
    .description("Take activations from the queue until told to stop (SIGTERM: hands back what runs; twice: at once).")
    .option("--out <dir>", "join the embedded Redis of a run's output directory, instead of REDIS_URL");
  return withWorkerFlags(command).action(async (flags: SettingsFlags & { out?: string }) => {
    const { runWorker } = await import("./run-worker.ts");
    const outDir = flags.out === undefined ? null : resolve(flags.out);
    await runWorker({ settings: await settingsFrom(flags), env: process.env, outDir });
  });
}
