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
    const { summary, results, kept, remarks } = await collectResults(out, (root) => openArtifactStore(artifacts ?? root, s3));
    for (const remark of remarks) process.stderr.write(printable(`${remark}\n`));
    process.stdout.write(printable(`${json === true ? JSON.stringify(summary) : summaryTable(summary)}\n`));
    const lines = kept > 0 ? `, kept ${kept} lines that the store does not have` : "";
    process.stderr.write(printable(`collected ${results} results${lines}: ${out}\n`));
  });
}
