// SPDX-License-Identifier: Apache-2.0
import { once } from "node:events";
import { Command } from "commander";
import { wholeNumber } from "./options.ts";
import { withServerFlags, type ServerFlags } from "./server-client.ts";
import { settingsFrom, withConfigFlag, type SettingsFlags } from "./settings-flags.ts";
import { stopSignals } from "./signals.ts";
import { printable } from "../printable.ts";

interface ResultsFlags extends SettingsFlags, ServerFlags {
  out?: string;
  cursor?: string;
  limit: number;
  follow?: true;
  bare?: true;
}

export function resultsCommand(): Command {
  const command = new Command("results")
    .description("Results of a run in the order of their ends, as lines of JSON, each with the cursor to go on after it.")
    .argument("[run]", "the run; with --out that of the directory when left away")
    .option("--out <dir>", "output directory of a run with an embedded Redis, instead of REDIS_URL")
    .option("--cursor <cursor>", "go on after the line of this cursor")
    .option("--limit <n>", "at most so many", wholeNumber(1), 1_000_000)
    .option("--follow", "wait for more until all have ended")
    .option("--bare", "without the results themselves: who ended, and how");
  return withConfigFlag(withServerFlags(command)).action(async (run: string | undefined, flags: ResultsFlags) => {
    const { openReader } = await import("./reader.ts");
    const reader = await openReader(flags, { settings: await settingsFrom(flags), env: process.env });
    const stop = stopSignals();
    try {
      const { id } = await reader.find(run ?? null, { run: true });
      const { cursor, limit, follow = false, bare = false } = flags;
      const from = cursor === undefined ? {} : { cursor };
      for await (const line of reader.results(id, { ...from, limit, follow, bare, signal: stop.signal })) {
        // A pipe that is read slowly must not fill this process.
        if (!process.stdout.write(printable(`${JSON.stringify(line)}\n`))) await once(process.stdout, "drain");
      }
    } catch (error) {
      if (!stop.signal.aborted) throw error;
    } finally {
      stop.dispose();
      await reader.close();
    }
  });
}
