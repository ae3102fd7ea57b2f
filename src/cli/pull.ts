// SPDX-License-Identifier: Apache-2.0
import { Command } from "commander";
import type { ArtifactStore } from "../artifacts/types.ts";
import type { ActivationResult } from "../contract/result.ts";
import type { Environment } from "../config/load.ts";
import type { Settings } from "../config/settings.ts";
import { printable } from "../printable.ts";
import { RollcallError } from "../errors.ts";
import { COLLECT, type Collect } from "../rollout/collect-files.ts";
import { summaryTable } from "../rollout/summary-table.ts";
import { oneOf } from "./options.ts";
import type { Reader } from "./reader.ts";
import { withServerFlags, type ServerFlags } from "./server-client.ts";
import { settingsFrom, withConfigFlag, type SettingsFlags } from "./settings-flags.ts";
import { rollcallVersion } from "./version.ts";

interface PullFlags extends SettingsFlags, ServerFlags {
  out: string;
  collect: Collect;
  json?: true;
}

export function pullCommand(): Command {
  const command = new Command("pull")
    .description(
      "Bring what has ended of a run from a server, or from REDIS_URL, into DIR: then report, compare, export, collect and explain work on it.",
    )
    .argument("<run>", "the run; `rollcall runs` lists them")
    .requiredOption("--out <dir>", "the directory that becomes its output directory; again, what ended since comes")
    .option("--collect <which>", "with --server: files of results to bring: all, outputs, none", oneOf(COLLECT), "all")
    .option("--json", "the summary as JSON on stdout");
  return withConfigFlag(withServerFlags(command)).action(async (run: string, { out, json, collect, ...flags }: PullFlags) => {
    const settings = await settingsFrom(flags);
    const given = { settings, env: process.env };
    const [{ openReader }, { openArtifactStore }, { pullRun }] = await Promise.all([
      import("./reader.ts"),
      import("../artifacts/open-store.ts"),
      import("../rollout/pull.ts"),
    ]);
    const reader = await openReader(flags, given);
    try {
      const { id } = await reader.find(run, { run: true });
      const say = (line: string): void => void process.stderr.write(printable(`${line}\n`));
      const bring = flags.server === undefined ? async () => undefined : await bringThrough(flags.server, flags, { given, collect, say });
      const openStore = (root: string): Promise<ArtifactStore> =>
        openArtifactStore(flags.server === undefined ? placeOf(settings.artifacts) : root, settings.s3);
      const from = flags.server ?? "REDIS_URL";
      const versions = { rollcall: rollcallVersion() };
      const { summary, results } = await pullRun(out, { id, from, results: endsOf(reader, id), versions }, { openStore, bring });
      const { total } = await reader.run(id);
      process.stdout.write(printable(`${json === true ? JSON.stringify(summary) : summaryTable(summary)}\n`));
      say(`pulled ${results} of ${total} results of run ${id}: ${out}${results < total ? "; the rest has not ended: pull again" : ""}`);
    } finally {
      await reader.close();
    }
  });
}

async function* endsOf(reader: Reader, runId: string): AsyncGenerator<ActivationResult, undefined> {
  const wanted = { limit: 1_000_000, follow: false, bare: false, signal: new AbortController().signal };
  for await (const { result } of reader.results(runId, wanted)) if (result !== null) yield result;
  return undefined;
}

async function bringThrough(
  url: string,
  flags: ServerFlags,
  { given, collect, say }: { given: { settings: Settings; env: Environment }; collect: Collect; say: (line: string) => void },
): Promise<(store: ArtifactStore, result: ActivationResult) => Promise<void>> {
  const [{ clientOf }, { collectFiles }] = await Promise.all([import("./server-client.ts"), import("../rollout/collect-files.ts")]);
  const client = await clientOf(url, flags, given);
  return (store, result) => collectFiles({ client, store, collect, say }, result);
}

function placeOf(artifacts: string | null | undefined): string {
  if (artifacts != null) return artifacts;
  throw new RollcallError("artifacts_missing", "results are in the artifact store: set artifacts (ROLLCALL_ARTIFACTS) to where it is");
}
