// SPDX-License-Identifier: Apache-2.0
import { Command } from "commander";
import { settingsFrom, withConfigFlag, type SettingsFlags } from "./settings-flags.ts";
import { daysValue } from "./options.ts";

export interface CleanFlags extends SettingsFlags {
  out?: string;
  olderThan?: number;
  run?: string;
  dryRun?: true;
  json?: true;
}

export function cleanCommand(setExitCode: (code: number) => void): Command {
  const command = new Command("clean")
    .description("Remove old ended jobs and streams from Redis, or all of one run. Results in the artifact store stay.")
    .option("--out <dir>", "output directory of a run with an embedded Redis, instead of REDIS_URL")
    .option("--older-than <days>", "what ended longer ago (default: retention.ended_jobs_days)", daysValue)
    .option("--run <id>", "everything of this run, ended or not, unless a worker holds some of it")
    .option("--dry-run", "only count")
    .option("--json", "the answer as one JSON object on stdout");
  return withConfigFlag(command).action(async (flags: CleanFlags) => {
    const settings = await settingsFrom(flags);
    const { clean } = await import("./clean-queue.ts");
    setExitCode(await clean(flags, { settings, env: process.env }));
  });
}
