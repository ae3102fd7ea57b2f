// SPDX-License-Identifier: Apache-2.0
import { type Command, InvalidArgumentError } from "commander";
import type { EvidenceSource } from "../artifacts/open-evidence.ts";
import { settingsFrom, withConfigFlag, type SettingsFlags } from "./settings-flags.ts";

/** Flags of the commands that read a finished run. */
export interface GatherFlags extends SettingsFlags {
  partial?: boolean;
  passThreshold: number;
}

export function withGatherFlags(command: Command): Command {
  return withConfigFlag(command)
    .option("--pass-threshold <reward>", "a repeat passes with at least this reward, for pass@k and pass^k", rewardValue, 1)
    .option("--partial", "also while a process works on the run: what is there so far");
}

/** Opens evidence where the settings say it is, else where the run put it by default. Throws RollcallError. */
export async function evidenceOpener(flags: SettingsFlags): Promise<(defaultRoot: string) => Promise<EvidenceSource>> {
  const { artifacts, s3 } = await settingsFrom(flags);
  const { openEvidence } = await import("../artifacts/open-evidence.ts");
  return (defaultRoot) => openEvidence(artifacts ?? defaultRoot, s3);
}

function rewardValue(text: string): number {
  const value = /^-?[0-9]+(\.[0-9]+)?$/.test(text) ? Number(text) : Number.NaN;
  if (Number.isNaN(value)) throw new InvalidArgumentError(`expected a number, got ${JSON.stringify(text)}.`);
  return value;
}
