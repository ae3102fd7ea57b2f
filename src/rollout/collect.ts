// SPDX-License-Identifier: Apache-2.0
import { rename, rm } from "node:fs/promises";
import type { ArtifactStore } from "../artifacts/types.ts";
import { messageOf, RollcallError } from "../errors.ts";
import { replaceFile } from "../host/files.ts";
import { readSpending, workedMs } from "./budget.ts";
import { completing } from "./complete-results.ts";
import { coverageOf } from "./coverage.ts";
import { openRowFile } from "./row-file.ts";
import { readRolloutResult } from "../resources/documents.ts";
import { openJsonLines } from "./json-lines.ts";
import { openOutputDir } from "./output-dir.ts";
import { openResultsFiles } from "./results-files.ts";
import { readSummary, summarise, type Summary } from "./summary.ts";
import { factsOf, type ResultFacts } from "./facts.ts";
import type { ActivationResult } from "../contract/result.ts";

/**
 * Rebuilds results.jsonl, failures.jsonl, summary.json, coverage.json and the tasks' directories of an output directory from its store. Lines for rows that were
 * refused before they were queued are kept: the store never had them; so are those whose result in the store is torn. The old files stand until the new ones are complete.
 */
export async function collectResults(
  outPath: string,
  openStore: (defaultRoot: string) => Promise<ArtifactStore>,
): Promise<{ summary: Summary; results: number; kept: number; remarks: string[] }> {
  const out = await openOutputDir(outPath);
  try {
    if (out.manifest === null) throw new RollcallError("out_empty", `${out.path} holds no run (there is no manifest.json)`);
    const store = await openStore(out.file("artifacts"));
    const fresh = { results: `${out.file("results")}.new`, failures: `${out.file("failures")}.new` };
    await Promise.all(Object.values(fresh).map((path) => rm(path, { force: true })));
    const raw = await openResultsFiles(fresh);
    const rows = await openRowFile(out.file("rows"));
    const files = rows === null ? raw : completing(raw, { out: out.path, rows, store });
    const ofResourcesServer = out.manifest.settings["resources"] != null; // then an activation's end is not yet a result
    const damaged = new Set<string>();
    let results = 0;
    for await (const id of store.listEnded()) {
      const result = await (ofResourcesServer ? readRolloutResult(store, id) : store.readCommit(id));
      if (result === null && (await store.readCommit(id)) === null) damaged.add(id);
      if (result === null || result.run_id !== out.manifest.run_id) continue;
      if (await files.take(result)) results++;
    }
    const isOnlyThere = (facts: ResultFacts): boolean => facts.refused_row || damaged.has(facts.activation_id);
    const kept = await keepLines(out.file("results"), isOnlyThere, async (result) => {
      if (!files.recorded.has(result.activation_id)) await files.take(result);
    });
    const remarks = [...damaged].map((id) =>
      files.recorded.has(id)
        ? `${id}: its result in the store is torn; its line in results.jsonl was kept`
        : `${id}: its result in the store is torn, and counts as not ended; the same \`run\` runs it again`,
    );
    await files.close();
    await rows?.close();
    await rename(fresh.failures, out.file("failures"));
    await rename(fresh.results, out.file("results"));
    // Without rows.jsonl (an earlier version) only what is there can be known.
    const ids = [...new Set([...(rows?.ids ?? []), ...files.recorded.keys()])];
    const total = ids.length;
    const budget = await readSpending(out.file("budget")).catch((error: unknown) => {
      remarks.push(`what was spent is not known: ${messageOf(error)}`);
      return null;
    });
    const asked = { runId: out.manifest.run_id, expected: total, ids, budgetStopped: budget !== null && budget.stopped_by !== null };
    await replaceFile(out.file("coverage"), `${JSON.stringify(coverageOf(files.recorded, asked), null, 2)}\n`);
    const summary = summarise(files.recorded.values(), {
      runId: out.manifest.run_id,
      total,
      wallMs: budget === null ? ((await readSummary(out.file("summary")))?.wall_ms ?? 0) : workedMs(budget),
      interrupted: false,
      budget,
    });
    await replaceFile(out.file("summary"), `${JSON.stringify(summary, null, 2)}\n`);
    return { summary, results, kept, remarks };
  } finally {
    await out.close();
  }
}

/** Takes the lines of the old file that the store knows nothing of. */
async function keepLines(
  path: string,
  keeps: (facts: ResultFacts) => boolean,
  take: (result: ActivationResult) => Promise<void>,
): Promise<number> {
  const kept = new Map<string, ActivationResult>(); // of several lines the last counts
  const old = await openJsonLines(path, (value) => {
    const facts = factsOf(value);
    if (facts !== null && keeps(facts)) kept.set(facts.activation_id, value as ActivationResult);
  });
  await old.close();
  for (const result of kept.values()) await take(result);
  return kept.size;
}
