// SPDX-License-Identifier: Apache-2.0
import { Command } from "commander";
import { settingsFrom, withConfigFlag, type SettingsFlags } from "./settings-flags.ts";
import { oneOf } from "./options.ts";

export function doctorCommand(setExitCode: (code: number) => void): Command {
  const command = new Command("doctor")
    .description("Check this machine: Codex, sandbox, Redis, keys, artifact store, disk. Each line says what to do; exit 1 when one fails.")
    .option("--sandbox <provider>", "bubblewrap (default) or host", oneOf(["bubblewrap", "host"] as const))
    .option("--json", "the lines as a JSON array on stdout");
  return withConfigFlag(command).action(async (flags: SettingsFlags & { json?: true }) => {
    const settings = await settingsFrom(flags);
    const { checkMachine } = await import("./checks.ts");
    const lines = await checkMachine({ settings, env: process.env });
    const text =
      flags.json === true
        ? JSON.stringify(lines)
        : lines.map(({ state, what, text }) => `${state.padEnd(4)}  ${what.padEnd(7)}  ${text}`).join("\n");
    process.stdout.write(`${text}\n`);
    if (lines.some(({ state }) => state === "fail")) setExitCode(1);
  });
}
