// SPDX-License-Identifier: Apache-2.0
import { createHash } from "node:crypto";
import type { ArtifactStore } from "../artifacts/types.ts";
import type { ActivationResult } from "../contract/result.ts";
import { RollcallError } from "../errors.ts";
import { collectResults } from "./collect.ts";
import { openOutputDir } from "./output-dir.ts";
import { writeRows } from "./row-file.ts";
import type { Summary } from "./summary.ts";

/**
 * Makes `path` an output directory of a run that was only queued, from what has ended of it: commands that read finished runs work on
 * it as on any other. Again, it brings what ended since. Throws RollcallError "out_foreign" for a directory of another run, or of a
 * run that was made there.
 */
export async function pullRun(
  path: string,
  run: {
    id: string;
    /** For people: the server or the Redis. */
    from: string;
    results: AsyncIterable<ActivationResult>;
    versions: Record<string, string>;
  },
  parts: {
    openStore: (defaultRoot: string) => Promise<ArtifactStore>;
    bring: (store: ArtifactStore, result: ActivationResult) => Promise<void>;
  },
): Promise<{ summary: Summary; results: number }> {
  const out = await openOutputDir(path);
  try {
    const { manifest } = out;
    if (manifest !== null && (manifest.run_id !== run.id || manifest.pulled_from === undefined))
      throw new RollcallError(
        "out_foreign",
        `${out.path} holds the run ${manifest.run_id}, which was not pulled as ${run.id}: choose another --out`,
      );
    const store = await parts.openStore(out.file("artifacts"));
    const tasks = new Map<string, Set<string>>();
    for await (const result of run.results) {
      await parts.bring(store, result);
      const { activation_id, task_id } = result;
      tasks.set(task_id.task_id, (tasks.get(task_id.task_id) ?? new Set()).add(activation_id));
    }
    await writeRows(out.file("rows"), tasks);
    await out.writeManifest({
      schema: "rollcall.manifest/1",
      run_id: run.id,
      created_at: manifest?.created_at ?? new Date().toISOString(),
      pulled_from: run.from,
      // Of its task file nothing is known: it is the same as no other.
      tasks: { path: run.from, sha256: createHash("sha256").update(run.id).digest("hex") },
      settings: {},
      versions: run.versions,
    });
  } finally {
    await out.close();
  }
  return collectResults(path, parts.openStore);
}
