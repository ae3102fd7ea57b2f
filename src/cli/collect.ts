// SPDX-License-Identifier: Apache-2.0
import { Command } from "commander";
import { openDirectoryStore } from "../artifacts/directory-store.ts";
import { collectResults } from "../rollout/collect.ts";
import { summaryTable } from "../rollout/summary-table.ts";

export function collectCommand(): Command {
  return new Command("collect")
    .description("Rebuild results.jsonl, failures.jsonl and summary.json of DIR from its artifacts.")
    .requiredOption("--out <dir>", "output directory of a run")
    .option("--json", "the summary as JSON on stdout")
    .action(async ({ out, json }: { out: string; json?: true }) => {
      const { summary, results, kept } = await collectResults(out, openDirectoryStore);
      process.stdout.write(`${json === true ? JSON.stringify(summary) : summaryTable(summary)}\n`);
      process.stderr.write(`collected ${results} results${kept > 0 ? `, kept ${kept} refused rows` : ""}: ${out}\n`);
    });
}
