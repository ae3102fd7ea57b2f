// SPDX-License-Identifier: Apache-2.0
import { RollcallError } from "../errors.ts";
import { gitState } from "../host/git.ts";
import { defaultPromptTemplate } from "./formats/prompt-template.ts";
import { requireSameRun, sameTasks, type OutputDir } from "./output-dir.ts";
import type { BatchRequest } from "./rollout.ts";
import { changedRows } from "./row-file.ts";
import type { TaskCheck, TaskSource } from "./tasks.ts";

/**
 * Makes a directory of which nothing was ever queued this run's, or refuses one whose task file or settings were others. Call what is
 * answered before anything is queued, and not sooner: a start that was refused leaves a directory that takes other settings. Throws
 * RollcallError "out_foreign", naming the rows and settings that changed.
 */
export async function claimDirectory(
  out: OutputDir,
  request: BatchRequest,
  source: TaskSource,
  check: TaskCheck,
): Promise<() => Promise<void>> {
  const { path, promptTemplate: template } = source;
  const tasks = { path, sha256: check.sha256, rows_sha256: check.rowsSha256 };
  const settings = {
    ...request.comparable,
    format: check.format === "rollcall" ? null : check.format,
    prompt_template_sha256: check.format === "gdpval" ? (template ?? defaultPromptTemplate()).sha256 : null,
  };
  if (out.manifest !== null && out.manifest.queued !== false) {
    try {
      requireSameRun(out.path, out.manifest, { tasks, settings });
      return () => Promise.resolve();
    } catch (error) {
      const changed = sameTasks(out.manifest.tasks, tasks) ? [] : await changedRows(out.file("rows"), source);
      if (!(error instanceof RollcallError) || changed.length === 0) throw error;
      throw new RollcallError(error.code, `${error.message}\n${changed.join("\n")}`, { cause: error });
    }
  }
  const manifest = {
    schema: "rollcall.manifest/1" as const,
    run_id: source.runId,
    created_at: new Date().toISOString(),
    tasks: { ...tasks, git: await gitState(path) },
    settings,
    other_settings: request.otherSettings,
    versions: request.versions,
  };
  await out.writeManifest({ ...manifest, queued: false });
  return () => out.writeManifest({ ...manifest, queued: true });
}
