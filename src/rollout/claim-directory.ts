// SPDX-License-Identifier: Apache-2.0
import { RollcallError } from "../errors.ts";
import { gitState } from "../host/git.ts";
import { defaultPromptTemplate } from "./formats/prompt-template.ts";
import { requireSameRun, sameTasks, type OutputDir } from "./output-dir.ts";
import type { BatchRequest } from "./rollout.ts";
import { changedRows } from "./row-file.ts";
import type { TaskCheck, TaskSource } from "./tasks.ts";

/**
 * Makes a new directory this run's, or refuses one whose task file or settings were others. Throws RollcallError "out_foreign",
 * naming the rows and settings that changed.
 */
export async function claimDirectory(out: OutputDir, request: BatchRequest, source: TaskSource, check: TaskCheck): Promise<void> {
  const { path, promptTemplate: template } = source;
  const tasks = { path, sha256: check.sha256, rows_sha256: check.rowsSha256 };
  const settings = {
    ...request.comparable,
    format: check.format === "rollcall" ? null : check.format,
    prompt_template_sha256: check.format === "gdpval" ? (template ?? defaultPromptTemplate()).sha256 : null,
  };
  if (out.manifest !== null) {
    try {
      return requireSameRun(out.path, out.manifest, { tasks, settings });
    } catch (error) {
      const changed = sameTasks(out.manifest.tasks, tasks) ? [] : await changedRows(out.file("rows"), source);
      if (!(error instanceof RollcallError) || changed.length === 0) throw error;
      throw new RollcallError(error.code, `${error.message}\n${changed.join("\n")}`, { cause: error });
    }
  }
  await out.writeManifest({
    schema: "rollcall.manifest/1",
    run_id: source.runId,
    created_at: new Date().toISOString(),
    tasks: { ...tasks, git: await gitState(path) },
    settings,
    other_settings: request.otherSettings,
    versions: request.versions,
  });
}
