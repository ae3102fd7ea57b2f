// SPDX-License-Identifier: Apache-2.0
import { Command } from "commander";
import { EXPORT_FORMATS, type ExportFormat } from "../export/formats.ts";
import { amount } from "../rollout/summary-table.ts";
import { evidenceOpener } from "./gather-out.ts";
import { oneOf } from "./options.ts";
import { withConfigFlag, type SettingsFlags } from "./settings-flags.ts";
import { printable } from "../printable.ts";

export function exportCommand(): Command {
  const command = new Command("export")
    .description("Write a run's trajectories for other tools: Responses items, ATIF (Harbor) or OpenAI chat messages.")
    .argument("<out>", "output directory of a run")
    .requiredOption("--format <format>", EXPORT_FORMATS.join(", "), oneOf(EXPORT_FORMATS))
    .option("--to <dir>", "where it is written (default: export/<format> in the output directory)")
    .option("--partial", "also while a process works on the run: what has ended so far")
    .option("--json", "what was written as JSON on stdout");
  return withConfigFlag(command).action(async (out: string, { format, to, partial = false, json, ...flags }: ExportFlags) => {
    const { exportRun } = await import("../export/export-run.ts");
    const { directory, about } = await exportRun({ out, format, to: to ?? null, partial, openEvidence: await evidenceOpener(flags) });
    if (json === true) {
      process.stdout.write(printable(`${JSON.stringify({ directory, ...about })}\n`));
      return;
    }
    process.stdout.write(printable(`${directory}\n`));
    const left = [
      ...told(about.no_conversation.length, "without a conversation, not exported"),
      ...told(about.unreadable.length, "unreadable, not exported"),
      ...told(about.without_prompt, "exported without their prompt, which the transcript does not have"),
      ...told(about.with_quarantined_artifacts, "with quarantined files (flagged in index.jsonl, never copied)"),
    ];
    process.stderr.write(
      printable(
        `${[`${amount(about.exported)} of ${amount(about.rollouts)} rollouts exported as ${about.format_version}`, ...left].join("; ")}\n`,
      ),
    );
  });
}

interface ExportFlags extends SettingsFlags {
  format: ExportFormat;
  to?: string;
  partial?: boolean;
  json?: true;
}

function told(count: number, what: string): string[] {
  return count === 0 ? [] : [`${amount(count)} ${what}`];
}
