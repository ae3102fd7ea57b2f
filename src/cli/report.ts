// SPDX-License-Identifier: Apache-2.0
import { mkdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import { Command } from "commander";
import { messageOf, RollcallError } from "../errors.ts";
import { replaceFile } from "../host/files.ts";
import { printable } from "../printable.ts";
import { evidenceOpener, withGatherFlags, type GatherFlags } from "./gather-out.ts";

export function reportCommand(): Command {
  const command = new Command("report")
    .description("Write a run's numbers as one self-contained HTML page and as Markdown: outcomes, causes, tools, model calls, rewards.")
    .argument("<out>", "output directory of a run")
    .option("--to <dir>", "where report.html and report.md are written (default: the output directory)")
    .option("--json", "the numbers as JSON on stdout; nothing is written");
  return withGatherFlags(command).action(async (out: string, { to, json, partial = false, passThreshold, ...flags }: ReportFlags) => {
    const { gatherRun } = await import("../report/gather.ts");
    const gathered = await gatherRun(out, { partial, passThreshold, openEvidence: await evidenceOpener(flags) });
    if (json === true) {
      process.stdout.write(printable(`${JSON.stringify(gathered.metrics)}\n`));
      return;
    }
    const { reportPage } = await import("../report/page.ts");
    const { reportMarkdown } = await import("../report/markdown.ts");
    const { keyFigures } = await import("../report/report-tables.ts");
    const directory = resolve(to ?? out);
    const files = { "report.html": await reportPage(gathered), "report.md": reportMarkdown(gathered) };
    await writeInto(directory, files);
    for (const { name, value, note } of keyFigures(gathered.metrics)) process.stdout.write(`${printable(`${name}: ${value} (${note})`)}\n`);
    for (const name of Object.keys(files)) process.stdout.write(printable(`${join(directory, name)}\n`));
  });
}

interface ReportFlags extends GatherFlags {
  to?: string;
  json?: true;
}

async function writeInto(directory: string, files: Readonly<Record<string, string>>): Promise<void> {
  try {
    await mkdir(directory, { recursive: true });
    for (const [name, text] of Object.entries(files)) await replaceFile(join(directory, name), text);
  } catch (error) {
    throw new RollcallError("out_unusable", `cannot write the report to ${directory}: ${messageOf(error)}; choose another --to`, {
      cause: error,
    });
  }
}
