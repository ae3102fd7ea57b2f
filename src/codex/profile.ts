// SPDX-License-Identifier: Apache-2.0
import type { ObservationGap } from "../contract/observation.ts";
import type { CauseCode, FailureKind } from "../contract/failure.ts";
import type { IncompleteCause } from "../contract/result.ts";
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
  /** Keys of config.toml that every session gets. */
  readonly settings: Readonly<Record<string, number>>;
  /** `features` of config.toml that every session gets. */
  readonly features: Readonly<Record<string, boolean>>;
  /** What keeps agents of its own from every kind of model: features, and further keys of config.toml. */
  readonly subagentsOff: {
    readonly features?: Readonly<Record<string, boolean | Readonly<Record<string, boolean | number>>>>;
    readonly agents?: Readonly<Record<string, boolean>>;
  };
  /** Whether it reads the AGENTS.md of a workdir that is not trusted. */
  readonly readsProjectInstructions: boolean;
  /** Most characters of a namespace, the tool's name and two more; what is longer is cut and gets a hash. */
  readonly longestCallName: number;
  /** Longest name of a tool server whose tools keep their names. */
  readonly longestServerName: number;
  /** Longest name of a tool; longer ones are cut and get a hash. null = they are passed on, and a model server may refuse them. */
  readonly longestToolName: number | null;
  /** Programs that Codex looks for in the directory of its own binary, and without which sessions run as if all were well. */
  readonly companions: readonly string[];
  /** What the text of a turn.failed means; the first that fits counts. */
  readonly turnFailures: readonly TurnFailureText[];
  /** A top-level error event that tells that the model server cannot be reached, and that Codex goes on trying. */
  readonly unreachableModel: RegExp;
  /** Why a required server kept Codex from starting. */
  readonly serverReasons: readonly ServerReason[];
  readonly transcript: TranscriptHabits;
}

/** Fits when the one pattern it has does: on Codex's text, or on a part of the error body that Codex passes on in its place. */
export type TurnFailureText = (
  | { readonly text: RegExp }
  | { readonly code: RegExp }
  | { readonly message: RegExp }
  | { readonly param: RegExp }
) & {
  readonly means: TurnFailureMeaning;
};

export type TurnFailureMeaning =
  /** Gradable: the session came to a limit of the model. */
  | { readonly incomplete: Extract<IncompleteCause, "max_output_tokens" | "context_overflow"> }
  /** `terminal`: another attempt would meet the same. */
  | { readonly cause: CauseCode; readonly kind: FailureKind; readonly terminal?: true };

export interface ServerReason {
  /** Codex's own words at the reason's beginning. */
  readonly begins: string;
  /** What the text after them means, the first that fits; none: unknown. */
  readonly meaning: readonly (readonly [RegExp, CauseCode])[];
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
      `${PROFILED_VERSIONS.join(", ")}, or unknown_version of [codex] to "try" to run it as if it were ${PROFILED_VERSIONS[0]}.`,
  );
}

/** The profile for reading what was recorded of a version: its own, else the newest. Never throws; null = the version is not known. */
export function profileToRead(version: string | null): CodexProfile {
  return profileFor(version ?? PROFILED_VERSIONS[0]!, "try");
}

/** Told of each session of a version that has no profile: which one it was, and as which it was read. Pure. */
export function unprofiledGaps(codex: { version: string; profile: CodexProfile } | null): ObservationGap[] {
  if (codex === null || codex.profile.version === codex.version) return [];
  return [{ code: "codex_version_unprofiled", detail: JSON.stringify({ version: codex.version, read_as: codex.profile.version }) }];
}
