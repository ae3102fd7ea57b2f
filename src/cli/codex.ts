// SPDX-License-Identifier: Apache-2.0
import { join } from "node:path";
import { Command, InvalidArgumentError } from "commander";
import type { InstalledCodex } from "../codex/install.ts";
import { settingsFrom, withConfigFlag, type SettingsFlags } from "./settings-flags.ts";

export function codexCommand(): Command {
  const all = new Command("codex").description("Codex versions of this machine, beside the packaged one (docs/operations.md).");
  const install = withConfigFlag(new Command("install"))
    .description("Fetch a version through npm; workers that start afterwards take sessions of it too.")
    .argument("<version>", "e.g. 0.144.4", exactVersion)
    .action(async (version: string, flags: SettingsFlags) => {
      const { installCodex } = await import("../codex/install.ts");
      const { installedCodexDir } = await import("./codexes.ts");
      const { stopSignals } = await import("./signals.ts");
      const settings = await settingsFrom(flags);
      const stop = stopSignals();
      try {
        const onFetch = (): void => void process.stderr.write(`fetching Codex ${version} through npm (about 150 MB)\n`);
        const done = await installCodex(version, installedCodexDir(settings), { signal: stop.signal, onFetch });
        process.stdout.write(`${installedText(done, settings.codex.unknown_version)}\n`);
      } finally {
        stop.dispose();
      }
    });
  all.addCommand(install.exitOverride());
  return all;
}

function installedText({ codex, fetched, integrity, pinned }: InstalledCodex, unknown: "refuse" | "try"): string {
  const { version, profile, hostDir, entry } = codex;
  const lines = [`Codex ${version} ${fetched ? "is installed" : "was there already"}: ${join(hostDir, entry)}`];
  if (pinned) lines.push("its digest is the one that this Rollcall knows");
  else if (integrity !== null) lines.push(`this Rollcall knows no digest of it; what npm's registry gave was recorded: ${integrity}`);
  if (profile.version !== version) {
    const set = unknown === "try" ? "" : '; workers take it with unknown_version = "try" in [codex] only';
    lines.push(`it has no profile here and is read as ${profile.version}${set}`);
  }
  return lines.join("\n");
}

function exactVersion(given: string): string {
  if (/^\d+\.\d+\.\d+$/.test(given)) return given;
  throw new InvalidArgumentError("Expected an exact version, e.g. 0.144.4.");
}
