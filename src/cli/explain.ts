// SPDX-License-Identifier: Apache-2.0
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { Command } from "commander";
import { activationIdSchema } from "../contract/identity.ts";
import type { ActivationResult } from "../contract/result.ts";
import { explain } from "../activation/explain.ts";
import { explanationText } from "../rollout/explain-text.ts";
import { findResult, readResultFile } from "../rollout/find-result.ts";
import { OUTPUT_FILES } from "../rollout/output-dir.ts";
import { printable } from "../printable.ts";

export function explainCommand(): Command {
  return new Command("explain")
    .description("Tell one activation: what was asked, what happened in which order, how it ended and why.")
    .argument("<result>", "a result.json, or with --out an activation id or task id")
    .option("--out <dir>", "output directory of the run")
    .option("--json", "as JSON on stdout")
    .action(async (named: string, { out, json }: { out?: string; json?: true }) => {
      const explanation = explain(await resultNamed(named, out));
      process.stdout.write(printable(`${json === true ? JSON.stringify(explanation) : explanationText(explanation)}\n`));
    });
}

async function resultNamed(named: string, out: string | undefined): Promise<ActivationResult> {
  if (out === undefined) return readResultFile(named);
  try {
    return await findResult(join(out, OUTPUT_FILES.results), named);
  } catch (error) {
    // A run that was cut off may have committed what it did not list.
    const committed = join(out, OUTPUT_FILES.artifacts, named, "result.json");
    if (!activationIdSchema.safeParse(named).success || (await stat(committed).catch(() => null)) === null) throw error;
    return readResultFile(committed);
  }
}
