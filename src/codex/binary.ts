// SPDX-License-Identifier: Apache-2.0
import { execFile } from "node:child_process";
import { constants, type Stats } from "node:fs";
import { access, realpath, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { promisify } from "node:util";
import { hasErrno, messageOf, RollcallError } from "../errors.ts";
import { codexTrees } from "./package-trees.ts";
import { profileFor, type CodexProfile } from "./profile.ts";

const run = promisify(execFile);

/** The Codex this package depends on, exactly. */
export const PACKAGED_CODEX_VERSION = "0.171.0";

/** The native Codex and the directory tree it needs; `key`, `hostDir` and `only` are what a sandbox calls its runtime. */
export interface CodexBinary {
  /** Asked for, and checked by {@link checkCodexVersion}. */
  version: string;
  /** What its texts and settings mean. */
  profile: CodexProfile;
  /** Names the content, e.g. "codex-0.171.0". */
  key: string;
  /** The package's vendor/<triple>, or the directory of a binary that stands alone. */
  hostDir: string;
  /** Relative to hostDir. */
  entry: string;
  /** Only these entries of hostDir belong to it; absent = all. */
  only?: string[];
  /** Directory of the tools Codex brings for the model's commands (rg), relative to hostDir; null = none. */
  tools: string | null;
  /** The bwrap of the package, a path of the host; null = none. */
  bwrap: string | null;
  /** Which files it was when it was checked, see {@link binaryStamp}; absent: nobody looks whether it still is. */
  stamp?: string;
}

/** Which Codex is wanted, and where to look for it. */
export interface WantedCodex {
  /** An executable to take instead of looking for one. */
  codexBin?: string;
  version: string;
  /** Where versions are that were installed beside the packaged ones, see install.ts. */
  installedIn?: string;
  /** Whose dependencies the packaged ones are; this package by default. */
  searchFrom?: URL;
  /** What becomes of a version without a profile. */
  unknown?: "refuse" | "try";
}

/**
 * Finds the native binary: `codexBin` when given, else among the packages and what was installed (package-trees.ts). It is not run.
 * Throws RollcallError "binary_missing", "codex_version_mismatch" when only other versions are there, or "codex_version_unknown" for
 * one without a profile.
 */
export async function findCodex(wanted: WantedCodex): Promise<CodexBinary> {
  return locate(wanted, profileFor(wanted.version, wanted.unknown));
}

/** {@link findCodex}, and what it found is what was wanted. Throws also what {@link checkCodexVersion} and {@link checkCompanions} throw. */
export async function checkedCodex(wanted: WantedCodex): Promise<CodexBinary> {
  const codex = await findCodex(wanted);
  const stamp = await binaryStamp(codex);
  await checkCodexVersion(codex);
  await checkCompanions(codex);
  return { ...codex, stamp };
}

async function locate(wanted: WantedCodex, profile: CodexProfile): Promise<CodexBinary> {
  const { version } = wanted;
  if (wanted.codexBin !== undefined) return givenBinary(wanted.codexBin, version, profile);
  const trees = await codexTrees(wanted);
  const tree = trees.find((one) => one.version === version);
  if (tree !== undefined) return inPackage(tree.hostDir, { version, profile });
  const install = `Run "rollcall codex install ${version}"`;
  if (trees.length > 0) {
    const found = trees.map((one) => one.version).join(", ");
    const text = `Codex ${version} is required, and only ${found} is here. ${install}, or set codex_version (and codex_bin) to what is to be run.`;
    throw new RollcallError("codex_version_mismatch", text);
  }
  throw new RollcallError(
    "binary_missing",
    `No package with the Codex binary for ${process.platform}-${process.arch} is installed; npm skips a platform package that fails to ` +
      `download. Install again with "npm ci --include=optional". Or: ${install}, or name an executable with the codex_bin setting.`,
  );
}

/** Runs the binary with `--version`. Throws RollcallError "codex_version_mismatch", or "binary_missing" when it does not run. */
export async function checkCodexVersion(binary: CodexBinary): Promise<void> {
  const path = join(binary.hostDir, binary.entry);
  let stdout: string;
  try {
    ({ stdout } = await run(path, ["--version"], { env: {}, timeout: 30_000, maxBuffer: 65_536 }));
  } catch (error) {
    throw new RollcallError("binary_missing", `Codex at ${path} does not run (${shortReason(error)}). ${INSTALL_OR_NAME}`, {
      cause: error,
    });
  }
  const version = /(\d+\.\d+\.\d+\S*)\s*$/.exec(stdout)?.[1];
  if (version !== binary.version) throw mismatch(`Codex at ${path} is`, version ?? "an unknown version", binary.version);
}

/** Throws RollcallError "codex_incomplete" when a program that this version needs is not beside it. */
async function checkCompanions(binary: CodexBinary): Promise<void> {
  for (const path of companionsOf(binary)) {
    if (await exists(path)) continue;
    throw new RollcallError(
      "codex_incomplete",
      `Codex ${binary.version} needs ${basename(path)} beside it, and there is none in ${dirname(path)}: it would refuse the commands ` +
        "of models that write code, and end as if all were well. Copy that program there from the same release, or name the binary inside " +
        "its npm package (vendor/<platform>/bin/codex) with the codex_bin setting.",
    );
  }
}

/** Tells the files of a binary from others that took their place. Throws when the binary is gone. */
export async function binaryStamp(binary: CodexBinary): Promise<string> {
  const stampOf = ({ dev, ino, size, mtimeMs }: Stats): string => [dev, ino, size, mtimeMs].join(":");
  const beside = companionsOf(binary).map((path) => stat(path).then(stampOf, () => "none"));
  return [stampOf(await stat(join(binary.hostDir, binary.entry))), ...(await Promise.all(beside))].join(" ");
}

/** Paths of the programs that must be beside the binary. */
function companionsOf({ profile, hostDir, entry }: CodexBinary): string[] {
  return profile.companions.map((name) => join(hostDir, dirname(entry), name));
}

const INSTALL_OR_NAME = "Install it again, or name another executable with the codex_bin setting.";

/** A binary in a package's tree (beside codex-package.json) brings the tree along; any other stands alone. */
async function givenBinary(codexBin: string, version: string, profile: CodexProfile): Promise<CodexBinary> {
  let path: string;
  try {
    path = await realpath(codexBin);
    await access(path, constants.X_OK);
  } catch (error) {
    const why = hasErrno(error, "EACCES") ? "is not executable" : "does not exist";
    throw new RollcallError("binary_missing", `The Codex executable ${codexBin} ${why}. Check the codex_bin setting.`, { cause: error });
  }
  if (basename(path) === "codex.js") {
    throw new RollcallError(
      "binary_missing",
      `${codexBin} is npm's launcher script, which needs Node in the sandbox. Name the native binary instead: ` +
        "vendor/<platform>/bin/codex in the @openai/codex-<platform> package beside it.",
    );
  }
  const tree = dirname(dirname(path));
  if (basename(dirname(path)) === "bin" && (await exists(join(tree, "codex-package.json"))))
    return inPackage(tree, { version, profile }, basename(path));
  const only = [basename(path), ...profile.companions];
  return { version, profile, key: `codex-${version}`, hostDir: dirname(path), entry: basename(path), only, tools: null, bwrap: null };
}

async function inPackage(
  hostDir: string,
  { version, profile }: Pick<CodexBinary, "version" | "profile">,
  name = "codex",
): Promise<CodexBinary> {
  const entry = `bin/${name}`;
  if (!(await exists(join(hostDir, entry)))) {
    throw new RollcallError("binary_missing", `${join(hostDir, entry)} is missing from its package. ${INSTALL_OR_NAME}`);
  }
  const bwrap = join(hostDir, "codex-resources", "bwrap");
  return {
    version,
    profile,
    key: `codex-${version}`,
    hostDir,
    entry,
    tools: (await exists(join(hostDir, "codex-path"))) ? "codex-path" : null,
    bwrap: (await exists(bwrap)) ? bwrap : null,
  };
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

function mismatch(what: string, version: string, wanted: string): RollcallError {
  return new RollcallError(
    "codex_version_mismatch",
    `${what} ${version}, but ${wanted} is required. Install that version, or set codex_version (and codex_bin) to what is to be run.`,
  );
}

function shortReason(error: unknown): string {
  const code = error instanceof Error && "code" in error ? error.code : null;
  return typeof code === "string" ? code : typeof code === "number" ? `exit code ${code}` : messageOf(error).slice(0, 200);
}
