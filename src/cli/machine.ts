// SPDX-License-Identifier: Apache-2.0
import { hostname } from "node:os";
import { binaryStamp, checkCodexVersion, findCodex, PACKAGED_CODEX_VERSION, type CodexBinary } from "../codex/binary.ts";
import { skillsIn, type SkillSet } from "../codex/skills.ts";
import { admissionPolicy, type Environment } from "../config/load.ts";
import { secretVariable } from "../config/secret-variable.ts";
import type { Settings } from "../config/settings.ts";
import { RollcallError } from "../errors.ts";
import { makeDirectory } from "../host/directory.ts";
import type { SandboxProvider, SandboxProviderName } from "../sandbox/types.ts";
import { makeProvider, sandboxStateDir } from "./provider.ts";

/** What this machine brings to every activation: looked for and tried once, before anything is queued. */
export interface Machine {
  /** Each of another version; the first is for activations that name none. */
  codexes: readonly [CodexBinary, ...CodexBinary[]];
  providers: Partial<Record<SandboxProviderName, SandboxProvider>>;
  /** Values of the variables that activations may name as their model key. */
  modelKeys: Record<string, string | undefined>;
  skills: SkillSet;
  host: string;
}

/**
 * Throws RollcallError "directory_unusable", "binary_missing", "codex_version_mismatch", "skills_unusable", "sandbox_unusable" with its
 * remedy, or what {@link secretVariable} throws.
 */
export async function prepareMachine(settings: Settings, env: Environment): Promise<Machine> {
  await makeDirectory(sandboxStateDir(settings), {
    what: "the place for records of sandboxes",
    fix: "set state_dir (ROLLCALL_STATE_DIR) to a directory that this user can write to",
  });
  const codex = await configuredCodex(settings);
  const { allow_providers, allow_key_env } = admissionPolicy(settings);
  const providers: Machine["providers"] = {};
  for (const name of allow_providers as SandboxProviderName[]) {
    providers[name] = await makeProvider(name, { settings, env, vendoredBwrap: codex.bwrap });
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
  return { codexes: [codex], providers, modelKeys, skills: await skillsIn(settings.skills_dir), host: hostname() };
}

/** The Codex that the settings name, its version checked. Throws RollcallError "binary_missing" or "codex_version_mismatch". */
export async function configuredCodex({ codex_bin, codex_version }: Settings): Promise<CodexBinary> {
  const codex = await findCodex({
    version: codex_version ?? PACKAGED_CODEX_VERSION,
    ...(codex_bin === undefined ? {} : { codexBin: codex_bin }),
  });
  const stamp = await binaryStamp(codex);
  await checkCodexVersion(codex);
  return { ...codex, stamp };
}
