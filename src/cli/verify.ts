// SPDX-License-Identifier: Apache-2.0
import { Command } from "commander";
import { openArtifactStore } from "../artifacts/open-store.ts";
import { RollcallError } from "../errors.ts";
import { reverify, type ReverifyAnswer } from "../rollout/reverify.ts";
import { resourcesLimitsOf, resourcesServerOf } from "./resources.ts";
import { settingsFrom, withConfigFlag, type SettingsFlags } from "./settings-flags.ts";
import { stopSignals } from "./signals.ts";
import { printable } from "../printable.ts";

interface VerifyFlags extends SettingsFlags {
  out: string;
  all?: true;
  json?: true;
}

export function verifyCommand(setExitCode: (code: number) => void): Command {
  const command = new Command("verify")
    .description("Have finished rollouts of DIR scored again by a resources server: those without a reward, or the named ones.")
    .argument("[ids...]", "activation or task ids")
    .requiredOption("--out <dir>", "output directory of a run with a resources server")
    .option("--resources-server <url>", "the server (default: resources.url)")
    .option("--all", "also those that have a reward")
    .option("--json", "the counts as JSON on stdout");
  return withConfigFlag(command).action(async (ids: string[], flags: VerifyFlags) => {
    setExitCode(await verify(ids, flags));
  });
}

async function verify(ids: string[], flags: VerifyFlags): Promise<number> {
  const settings = await settingsFrom(flags);
  const server = resourcesServerOf(settings);
  if (server === null) throw new RollcallError("resources_missing", "name the resources server: --resources-server URL, or resources.url");
  const stop = stopSignals();
  try {
    const answer = await reverify({
      out: flags.out,
      ids: ids.length === 0 ? null : ids,
      all: flags.all === true,
      server,
      limits: resourcesLimitsOf(settings),
      openStore: (root) => openArtifactStore(settings.artifacts ?? root, settings.s3),
      say: (line) => void process.stderr.write(printable(`${line}\n`)),
      signal: stop.signal,
    });
    process.stdout.write(
      printable(`${flags.json === true ? JSON.stringify(answer) : `verified ${answer.verified}, not verified ${answer.failed}`}\n`),
    );
    return stop.signal.aborted ? 75 : exitCodeOf(answer);
  } finally {
    stop.dispose();
  }
}

function exitCodeOf({ verified, failed }: ReverifyAnswer): number {
  if (failed === 0) return 0;
  return verified === 0 ? 3 : 1;
}
