// SPDX-License-Identifier: Apache-2.0
import { Command } from "commander";
import { settingsFrom, withConfigFlag, type SettingsFlags } from "./settings-flags.ts";
import { printable } from "../printable.ts";

export function gcCommand(setExitCode: (code: number) => void): Command {
  const command = new Command("gc")
    .description(
      "Remove what killed workers and embedded servers left on this host, and in the S3 store; nothing of a living one. Exit 1 when something stayed.",
    )
    .option("--dry-run", "only tell")
    .option("--json", "the answer as one JSON object on stdout");
  return withConfigFlag(command).action(async (flags: SettingsFlags & { dryRun?: true; json?: true }) => {
    const settings = await settingsFrom(flags);
    const { collectGarbage } = await import("./collect-garbage.ts");
    const found = await collectGarbage(settings, { dryRun: flags.dryRun === true });
    const stayed = found.filter(({ error }) => error !== null).length;
    const lines = found.map(({ kind, what, why, done, error }) => `${done.padEnd(12)}  ${kind.padEnd(17)}  ${what}  (${error ?? why})`);
    if (lines.length === 0) lines.push("nothing was left here");
    process.stdout.write(printable(`${flags.json === true ? JSON.stringify({ found }) : lines.join("\n")}\n`));
    if (stayed > 0) setExitCode(1);
  });
}
