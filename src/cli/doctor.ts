// SPDX-License-Identifier: Apache-2.0
import { hostname } from "node:os";
import { Command } from "commander";
import type { Settings } from "../config/settings.ts";
import type { CheckLine } from "./checks.ts";
import { settingsFrom, withConfigFlag, type SettingsFlags } from "./settings-flags.ts";
import { oneOf } from "./options.ts";
import { printable } from "../printable.ts";

export function doctorCommand(setExitCode: (code: number) => void): Command {
  const command = new Command("doctor")
    .description("Check this machine: Codex, sandbox, Redis, keys, artifact store, disk. Each line says what to do; exit 1 when one fails.")
    .option("--worker", "only ask whether a worker of this host is alive in Redis: a health check of its container")
    .option("--sandbox <provider>", "bubblewrap (default) or host", oneOf(["bubblewrap", "host"] as const))
    .option("--json", "the lines as a JSON array on stdout");
  return withConfigFlag(command).action(async (flags: SettingsFlags & { json?: true; worker?: true }) => {
    const settings = await settingsFrom(flags);
    const lines = await linesOf(flags.worker === true, settings);
    const text =
      flags.json === true
        ? JSON.stringify(lines)
        : lines.map(({ state, what, text }) => `${state.padEnd(4)}  ${what.padEnd(7)}  ${text}`).join("\n");
    process.stdout.write(printable(`${text}\n`));
    if (lines.some(({ state }) => state === "fail")) setExitCode(1);
  });
}

async function linesOf(worker: boolean, settings: Settings): Promise<CheckLine[]> {
  if (!worker) return (await import("./checks.ts")).checkMachine({ settings, env: process.env });
  return [await (await import("./check-worker.ts")).checkWorker(settings, hostname())];
}
