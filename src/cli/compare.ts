// SPDX-License-Identifier: Apache-2.0
import { Command } from "commander";
import { evidenceOpener, withGatherFlags, type GatherFlags } from "./gather-out.ts";
import { printable } from "../printable.ts";

export function compareCommand(): Command {
  const command = new Command("compare")
    .description("Put two runs side by side, paired by task, and say which differences are beyond noise.")
    .argument("<first>", "output directory of a run")
    .argument("<second>", "output directory of another")
    .option("--json", "as JSON on stdout");
  return withGatherFlags(command).action(
    async (first: string, second: string, { json, partial = false, passThreshold, ...flags }: CompareFlags) => {
      const { gatherRun } = await import("../report/gather.ts");
      const options = { partial, passThreshold, openEvidence: await evidenceOpener(flags) };
      const { compareRuns } = await import("../report/compare.ts");
      const comparison = compareRuns(await gatherRun(first, options), await gatherRun(second, options));
      const { comparisonText } = await import("../report/compare-text.ts");
      process.stdout.write(printable(`${json === true ? JSON.stringify(comparison) : comparisonText(comparison)}\n`));
    },
  );
}

interface CompareFlags extends GatherFlags {
  json?: true;
}
