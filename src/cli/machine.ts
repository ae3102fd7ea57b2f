// SPDX-License-Identifier: Apache-2.0
import { hostname } from "node:os";
import type { CodexBinary } from "../codex/binary.ts";
import { skillsIn, type SkillSet } from "../codex/skills.ts";
import { admissionPolicy, type Environment } from "../config/load.ts";
import { secretVariable } from "../config/secret-variable.ts";
import type { Settings } from "../config/settings.ts";
import { RollcallError } from "../errors.ts";
import { makeDirectory } from "../host/directory.ts";
import type { SandboxProvider, SandboxProviderName } from "../sandbox/types.ts";
import { codexesOf, type LeftOut } from "./codexes.ts";
import { makeProvider, sandboxStateDir } from "./provider.ts";

/** What this machine brings to every activation: looked for and tried once, before anything is queued. */
export interface Machine {
  /** Each of another version; the first is for activations that name none. */
  codexes: readonly [CodexBinary, ...CodexBinary[]];
  /** Versions that are here too and cannot be run. */
  leftOut: readonly LeftOut[];
  providers: Partial<Record<SandboxProviderName, SandboxProvider>>;
  /** Values of the variables that activations may name as their model key. */
  modelKeys: Record<string, string | undefined>;
  skills: SkillSet;
  host: string;
}

/**
 * Throws RollcallError "directory_unusable", "skills_unusable", "sandbox_unusable" with its remedy, or what {@link codexesOf} and
 * {@link secretVariable} throw.
 */
export async function prepareMachine(settings: Settings, env: Environment): Promise<Machine> {
  await makeDirectory(sandboxStateDir(settings), {
    what: "the place for records of sandboxes",
    fix: "set state_dir (ROLLCALL_STATE_DIR) to a directory that this user can write to",
  });
  const { codexes, leftOut } = await codexesOf(settings);
  const { allow_providers, allow_key_env } = admissionPolicy(settings);
  const providers: Machine["providers"] = {};
  for (const name of allow_providers as SandboxProviderName[]) {
    providers[name] = await makeProvider(name, { settings, env, vendoredBwrap: codexes[0].bwrap });
  }
  const probe = await providers[settings.sandbox.provider]!.probe();
  if (!probe.ok) {
    throw new RollcallError(
      "sandbox_unusable",
      `sandboxes cannot be made here: ${probe.summary}${probe.fix === undefined ? "" : `; ${probe.fix}`}`,
    );
  }
  const modelKeys: Machine["modelKeys"] = {};
  for (const name of allow_key_env) modelKeys[name] = await secretVariable(env, name);
  return { codexes, leftOut, providers, modelKeys, skills: await skillsIn(settings.skills_dir), host: hostname() };
}
