// SPDX-License-Identifier: Apache-2.0
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { Command } from "commander";
import type { Outcome } from "../activation/classify.ts";
import type { Replay } from "../activation/replay.ts";
import { activationIdSchema } from "../contract/identity.ts";
import { hasErrno, RollcallError } from "../errors.ts";
import { buildSecretSet } from "../redact/index.ts";
import { findResult } from "../rollout/find-result.ts";
import { printable } from "../printable.ts";
import { OUTPUT_FILES } from "../rollout/output-dir.ts";
import { settingsFrom, withConfigFlag, type SettingsFlags } from "./settings-flags.ts";

interface ReplayFlags extends SettingsFlags {
  out?: string;
  secretEnv?: string[];
  json?: true;
}

export function replayCommand(setExitCode: (code: number) => void): Command {
  const command = new Command("replay")
    .description("Read the kept evidence of attempts again, without a model, and compare with what is recorded: exit 0 equal, 1 not.")
    .argument("<attempt>", "directory of an attempt or of an activation's attempts; with --out, an activation id or task id")
    .option("--out <dir>", "output directory of the run whose activation is named")
    .option("--secret-env <names...>", "variables whose values are redacted as well, for evidence that was kept unredacted")
    .option("--json", "what was concluded now, one JSON line an attempt");
  return withConfigFlag(command).action(async (named: string, { out, secretEnv = [], json, ...flags }: ReplayFlags) => {
    const secrets = buildSecretSet(secretEnv.map((name) => ({ name, value: process.env[name] ?? "" })));
    let equal = true;
    const { replayAttempt } = await import("../activation/replay.ts");
    for (const directory of await attemptDirectories(named, out, flags)) {
      const replay = await replayAttempt(directory, secrets);
      equal &&= replay === null || replay.differences.length === 0;
      process.stdout.write(printable(`${json === true ? JSON.stringify({ directory, ...replay }) : replayText(directory, replay)}\n`));
    }
    setExitCode(equal ? 0 : 1);
  });
}

async function attemptDirectories(named: string, out: string | undefined, flags: SettingsFlags): Promise<string[]> {
  const directory = out === undefined ? named : await evidenceOf(named, out, await artifactsOf(out, flags));
  const names = await namesIn(directory);
  if (names.includes("attempt.json")) return [directory];
  const attempts = names.flatMap((name) => /^attempt-(\d+)$/.exec(name)?.slice(1).map(Number) ?? []).sort((a, b) => a - b);
  if (attempts.length > 0) return attempts.map((number) => join(directory, `attempt-${number}`));
  const hint = out === undefined ? ", or --out with an activation id or task id" : "";
  throw new RollcallError("replay_impossible", `${directory} holds no attempt: name the directory of one${hint}`);
}

/** Of an activation, or of a task that the run recorded; else it is a directory. */
async function evidenceOf(named: string, out: string, artifacts: string): Promise<string> {
  const directory = join(artifacts, named);
  if (activationIdSchema.safeParse(named).success && (await namesIn(directory)).length > 0) return directory;
  if ((await namesIn(named)).length > 0) return named;
  return join(artifacts, (await findResult(join(out, OUTPUT_FILES.results), named)).activation_id);
}

async function artifactsOf(out: string, flags: SettingsFlags): Promise<string> {
  const { artifacts } = await settingsFrom(flags);
  const place = artifacts ?? join(out, OUTPUT_FILES.artifacts);
  if (!place.startsWith("s3:")) return place.replace(/^dir:/u, "");
  throw new RollcallError(
    "replay_impossible",
    `the evidence is in ${place}: copy the activation's part of it here and name that directory`,
  );
}

async function namesIn(directory: string): Promise<string[]> {
  try {
    return await readdir(directory);
  } catch (error) {
    if (hasErrno(error, "ENOENT") || hasErrno(error, "ENOTDIR")) return [];
    throw error;
  }
}

function replayText(directory: string, replay: Replay | null): string {
  if (replay === null) return `${directory}: Codex was never launched, so there is nothing to replay`;
  const { recorded, replayed, differences } = replay;
  if (differences.length === 0) return `${directory}: equal (${outcomeText(replayed)})`;
  const lines = differences.map(
    (one) => `  ${printable(one.path)}\n    recorded: ${shown(one.recorded)}\n    replayed: ${shown(one.replayed)}`,
  );
  return `${directory}: DIFFERENT (recorded ${outcomeText(recorded)}; replayed ${outcomeText(replayed)})\n${lines.join("\n")}`;
}

function outcomeText({ status, failure, incomplete_cause, cause_class }: Outcome): string {
  return [status, incomplete_cause ?? failure?.cause_code, cause_class].filter((word) => word != null).join(", ");
}

function shown(value: unknown): string {
  return value === undefined ? "(nothing)" : printable(JSON.stringify(value).slice(0, 400));
}
