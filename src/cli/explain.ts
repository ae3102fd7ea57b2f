// SPDX-License-Identifier: Apache-2.0
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { Command } from "commander";
import { unlessUnknown } from "../client/api-error.ts";
import { activationIdSchema } from "../contract/identity.ts";
import type { ActivationResult } from "../contract/result.ts";
import { explain } from "../activation/explain.ts";
import { RollcallError } from "../errors.ts";
import { explanationText } from "../rollout/explain-text.ts";
import { findResult, readResultFile } from "../rollout/find-result.ts";
import { OUTPUT_FILES } from "../rollout/output-dir.ts";
import { printable } from "../printable.ts";
import { withServerFlags, type ServerFlags } from "./server-client.ts";
import { settingsFrom, withConfigFlag, type SettingsFlags } from "./settings-flags.ts";

interface ExplainFlags extends SettingsFlags, ServerFlags {
  out?: string;
  json?: true;
}

export function explainCommand(): Command {
  const command = new Command("explain")
    .description("Tell one activation: what was asked, what happened in which order, how it ended and why.")
    .argument("<result>", "a result.json, or with --out or --server an activation id or task id")
    .option("--out <dir>", "output directory of the run")
    .option("--json", "as JSON on stdout");
  return withConfigFlag(withServerFlags(command)).action(async (named: string, flags: ExplainFlags) => {
    const { out, json, server } = flags;
    const result = server === undefined ? await resultNamed(named, out) : await resultThere(named, server, flags);
    const explanation = explain(result);
    process.stdout.write(printable(`${json === true ? JSON.stringify(explanation) : explanationText(explanation)}\n`));
  });
}

async function resultThere(named: string, server: string, flags: ExplainFlags): Promise<ActivationResult> {
  const [{ clientOf }, { findThere }] = await Promise.all([import("./server-client.ts"), import("./control-server.ts")]);
  const client = await clientOf(server, flags, { settings: await settingsFrom(flags), env: process.env });
  // First: a result is there for longer than what the queue knows of its activation.
  const kept = activationIdSchema.safeParse(named).success ? await unlessUnknown(client.result(named)) : null;
  if (kept !== null) return kept;
  const target = await findThere(client, named, { run: false, out: flags.out });
  if (target.kind === "run") throw new RollcallError("activation_needed", `${named} is a run; name one of its activations or tasks`);
  const { activation_id, state } = target.found;
  const result = await client.result(activation_id);
  if (result !== null) return result;
  throw new RollcallError(
    "not_ended",
    `${activation_id} has not ended: it is ${state}; \`rollcall watch ${activation_id} --server ${server}\` follows it`,
  );
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
