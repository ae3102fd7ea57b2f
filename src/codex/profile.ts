// SPDX-License-Identifier: Apache-2.0
import { RollcallError } from "../errors.ts";
import { codex0_144_4 } from "./profiles/0.144.4.ts";
import { codex0_171_0 } from "./profiles/0.171.0.ts";

/**
 * All that differs between Codex versions, as far as we act on it: which keys a version takes, and what its texts mean. Nothing
 * else in the code looks at a version. docs/codex-versions.md tells how a new one gets its profile.
 */
export interface CodexProfile {
  /** The version that the profile was measured with. */
  readonly version: string;
  /** `features` of config.toml that every session gets. */
  readonly features: Readonly<Record<string, boolean>>;
  /** Longest name of a tool server whose tools keep their names; null = names are passed on as they are. */
  readonly longestServerName: number | null;
  /** Longest name of a tool; longer ones are cut and get a hash. null = they are passed on, and a model server may refuse them. */
  readonly longestToolName: number | null;
  readonly transcript: TranscriptHabits;
}

/** How a version tells of a thread in its transcript. */
export interface TranscriptHabits {
  /** Where the tokens of a model call stand: in a record of its own, with its response id, or only as growth of the thread's totals. */
  readonly modelCalls: "records" | "totals";
  /** It passes on how much input a model server wrote to its cache. */
  readonly cacheWrites: boolean;
  /** A command that a script of code mode ran has a record of its own. */
  readonly nestedCommands: boolean;
}

/** The newest first. */
const PROFILES: readonly CodexProfile[] = [codex0_171_0, codex0_144_4];

/** Versions that have a profile, the newest first. */
export const PROFILED_VERSIONS: readonly string[] = PROFILES.map(({ version }) => version);

/** The profile of exactly this version; null = it has none. */
export function exactProfile(version: string): CodexProfile | null {
  return PROFILES.find((profile) => profile.version === version) ?? null;
}

/**
 * The profile to read a version with: its own, or where `unknown` is "try" the newest one. Throws RollcallError
 * "codex_version_unknown" for a version that has none.
 */
export function profileFor(version: string, unknown: "refuse" | "try" = "refuse"): CodexProfile {
  const exact = exactProfile(version);
  if (exact !== null) return exact;
  if (unknown === "try") return PROFILES[0]!;
  throw new RollcallError(
    "codex_version_unknown",
    `Codex ${version} has no profile here: what its texts and settings mean is not known. Set codex_version to one of ` +
      `${PROFILED_VERSIONS.join(", ")}, or codex.unknown_version to "try" to run it as if it were ${PROFILED_VERSIONS[0]}.`,
  );
}

/** The profile for reading what was recorded of a version: its own, else the newest. Never throws; null = the version is not known. */
export function profileToRead(version: string | null): CodexProfile {
  return profileFor(version ?? PROFILED_VERSIONS[0]!, "try");
}
