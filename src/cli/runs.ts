// SPDX-License-Identifier: Apache-2.0
import { Command } from "commander";
import type { RunListReply } from "../api/routes/run-list.ts";
import { printable } from "../printable.ts";
import { wholeNumber } from "./options.ts";
import { withServerFlags, type ServerFlags } from "./server-client.ts";
import { settingsFrom, withConfigFlag, type SettingsFlags } from "./settings-flags.ts";

interface RunsFlags extends SettingsFlags, ServerFlags {
  out?: string;
  limit: number;
  json?: true;
}

export function runsCommand(): Command {
  const command = new Command("runs")
    .description("List the runs of a server, or of a Redis: those that something was queued of last first.")
    .option("--out <dir>", "output directory of a run, or of `rollcall serve`, with an embedded Redis, instead of REDIS_URL")
    .option("--limit <n>", "at most so many", wholeNumber(1), 50)
    .option("--json", "as lines of JSON");
  return withConfigFlag(withServerFlags(command)).action(async (flags: RunsFlags) => {
    const { openReader } = await import("./reader.ts");
    const reader = await openReader(flags, { settings: await settingsFrom(flags), env: process.env });
    try {
      let left = flags.limit;
      for await (const run of reader.runs()) {
        process.stdout.write(`${flags.json === true ? JSON.stringify(run) : printable(runLine(run))}\n`);
        if (--left === 0) break;
      }
    } finally {
      await reader.close();
    }
  });
}

/** For people. Pure. */
function runLine({ run_id, queued_at, running, open, ended, with_failure, paused, held_back }: RunListReply["runs"][number]): string {
  return [
    `${run_id}: ${ended} of ${ended + open} ended`,
    ...(with_failure === 0 ? [] : [`${with_failure} with a failure`]),
    ...(running === 0 ? [] : [`${running} running`]),
    ...(paused ? ["paused"] : []),
    ...(held_back ? ["held back by its breaker"] : []),
    `queued last at ${queued_at}`,
  ].join(", ");
}
