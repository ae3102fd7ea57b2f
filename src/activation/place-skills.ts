// SPDX-License-Identifier: Apache-2.0
import type { Sandbox } from "../sandbox/types.ts";
import type { AttemptContext } from "./attempt.ts";
import { inTime } from "./in-time.ts";
import type { RunPorts } from "./run.ts";
import { asStageFailure, stageFailure } from "./stage-failure.ts";

/**
 * Copies the worker's skills into CODEX_HOME, where Codex looks for them: those that the activation names, or all. The copies are
 * read-only, and gone with the sandbox. Throws StageFailure "config_invalid" for a skill that this worker has not.
 */
export async function placeSkills(
  { activation }: AttemptContext,
  sandbox: Pick<Sandbox, "place" | "inside">,
  { skills, createSeconds: seconds }: Pick<RunPorts, "skills" | "createSeconds">,
  stop: AbortSignal,
): Promise<void> {
  const names = activation.codex.skills ?? skills.names;
  const missing = names.filter((name) => !skills.names.includes(name));
  if (missing.length > 0) {
    const known = skills.names.length === 0 ? "it has none" : `it has ${skills.names.join(", ")}`;
    throw stageFailure("config_invalid", `this worker has no skill called ${missing.join(", ")}; ${known} (skills_dir)`);
  }
  try {
    await inTime({ what: "placing skills in the sandbox", seconds, stop }, async (signal) => {
      for (const name of names) {
        for (const { path, bytes, executable } of skills.filesOf(name)) {
          signal.throwIfAborted();
          await sandbox.place(`${sandbox.inside.codexHome}/skills/${name}/${path}`, bytes, executable ? 0o555 : 0o444);
        }
      }
    });
  } catch (error) {
    throw asStageFailure(error, "sandbox_failed");
  }
}
