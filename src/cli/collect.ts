// SPDX-License-Identifier: Apache-2.0
import { Command } from "commander";
import { openArtifactStore } from "../artifacts/open-store.ts";
import { collectResults } from "../rollout/collect.ts";
import { settingsFrom, withConfigFlag, type SettingsFlags } from "./settings-flags.ts";
import { summaryTable } from "../rollout/summary-table.ts";
import { printable } from "../printable.ts";

export function collectCommand(): Command {
  const command = new Command("collect")
    .description("Rebuild results.jsonl, failures.jsonl, summary.json, coverage.json and the tasks' directories of DIR from its artifacts.")
    .requiredOption("--out <dir>", "output directory of a run")
    .option("--json", "the summary as JSON on stdout");
  return withConfigFlag(command).action(async ({ out, json, ...flags }: SettingsFlags & { out: string; json?: true }) => {
    const { artifacts, s3 } = await settingsFrom(flags);
    const { summary, results, kept } = await collectResults(out, (root) => openArtifactStore(artifacts ?? root, s3));
    process.stdout.write(printable(`${json === true ? JSON.stringify(summary) : summaryTable(summary)}\n`));
    process.stderr.write(printable(`collected ${results} results${kept > 0 ? `, kept ${kept} refused rows` : ""}: ${out}\n`));
  });
}
