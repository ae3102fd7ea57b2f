// SPDX-License-Identifier: Apache-2.0
// Scripted sessions of every kind under given Codex versions, by the built command: what differs from the servers' own counts and from
// what is right. For the day on which a new Codex comes out; docs/codex-versions.md tells what to do then.
import { writeFile } from "node:fs/promises";
import { Command } from "commander";
import { wholeNumber } from "../src/cli/options.ts";
import { PROFILED_VERSIONS } from "../src/codex/profile.ts";
import { runMatrix } from "./codex-matrix/matrix.ts";
import { differs, markdownOf, type VersionReport } from "./codex-matrix/report.ts";
import { SCENARIOS } from "./codex-matrix/scenarios/index.ts";

interface Flags {
  version?: string[];
  model?: string[];
  only?: string[];
  concurrency: number;
  keep?: string;
  write?: string;
  json?: true;
}

const several = (value: string, before: string[] | undefined): string[] => [...(before ?? []), value];
const flags = new Command("codex-matrix")
  .description("Run scripted sessions under Codex versions and compare them with the servers' own counts; exit 1 when anything differs.")
  .option(
    "--version <x>",
    "a Codex version, fetched from npm where it is missing; several times for several (default: all profiled)",
    several,
  )
  .option("--model <name>", "instead of one of each kind that the version knows; several times for several", several)
  .option("--only <text>", "scenarios whose names hold it; several times for several", several)
  .option("--concurrency <n>", "sessions at once", wholeNumber(1), 4)
  .option("--keep <dir>", "keep everything of each run there")
  .option("--write <file>", "the tables as a page, too")
  .option("--json", "the reports as JSON on stdout")
  .parse()
  .opts<Flags>();

const { only = [""], concurrency, keep, model: models } = flags;
const scenarios = SCENARIOS.filter(({ name }) => only.some((text) => name.includes(text)));
const reports: VersionReport[] = [];
for (const version of flags.version ?? PROFILED_VERSIONS) {
  process.stderr.write(`codex-matrix: Codex ${version}, ${scenarios.length} scenarios\n`);
  const kept = keep === undefined ? {} : { keep };
  const report = await runMatrix({ version, scenarios, concurrency, ...kept, ...(models === undefined ? {} : { models }) });
  reports.push(report);
  if (flags.json !== true) console.log(`${markdownOf(report)}\n`);
}
if (flags.json === true) console.log(JSON.stringify(reports));
if (flags.write !== undefined) {
  const head = "# Codex versions compared\n\nWritten by `npm run codex:matrix`; docs/codex-versions.md says what it is for.\n";
  await writeFile(flags.write, `${[head, ...reports.map(markdownOf)].join("\n").trimEnd()}\n`);
}
process.exitCode = reports.some(differs) ? 1 : 0;
