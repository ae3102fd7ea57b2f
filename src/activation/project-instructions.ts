// SPDX-License-Identifier: Apache-2.0
import { lstat } from "node:fs/promises";
import { join } from "node:path";
import type { CodexProfile } from "../codex/profile.ts";
import type { SessionActivation } from "../contract/activation.ts";
import type { ObservationGap } from "../contract/observation.ts";
import type { Sandbox } from "../sandbox/types.ts";

/** Of the files that Codex looks for in a directory, it takes the first that is there. */
const NAMES = ["AGENTS.override.md", "AGENTS.md"];

/** The plan, and what {@link ignoredInstructions} finds. */
export async function withIgnoredInstructions<Plan extends { gaps: ObservationGap[] }>(
  plan: Plan,
  ...[sandbox, profile, settings]: Parameters<typeof ignoredInstructions>
): Promise<Plan> {
  return { ...plan, gaps: [...plan.gaps, ...(await ignoredInstructions(sandbox, profile, settings))] };
}

/**
 * A gap where the workdir holds instructions for agents that this Codex does not read, since the workdir is not trusted: trusted, its
 * .codex/config.toml could send a granted server's token elsewhere. To be asked when every file is in place. Looks at names
 * only: a link counts as a file, and is not followed.
 */
export async function ignoredInstructions(
  { outside }: Pick<Sandbox, "outside">,
  { readsProjectInstructions }: CodexProfile,
  { extra_config: extra = {} }: Pick<SessionActivation["codex"], "extra_config">,
): Promise<ObservationGap[]> {
  if (readsProjectInstructions || extra["project_doc_max_bytes"] === 0) return [];
  const more = Array.isArray(extra["project_doc_fallback_filenames"]) ? extra["project_doc_fallback_filenames"] : [];
  for (const name of [...NAMES, ...more.filter(isFileName)]) {
    const found = await lstat(join(outside.workdir, name)).catch(() => null);
    if (found?.isSymbolicLink() === true || (found?.isFile() === true && found.size > 0))
      return [{ code: "project_instructions_ignored", detail: JSON.stringify({ path: name }) }];
  }
  return [];
}

function isFileName(name: unknown): name is string {
  return typeof name === "string" && name !== "" && name !== ".." && !/[/\0]/.test(name);
}
