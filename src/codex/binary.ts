// SPDX-License-Identifier: Apache-2.0
import { execFile } from "node:child_process";
import { constants } from "node:fs";
import { access, readFile, realpath, stat } from "node:fs/promises";
import { createRequire } from "node:module";
import { basename, dirname, join } from "node:path";
import { promisify } from "node:util";
import { hasErrno, messageOf, RollcallError } from "../errors.ts";
import { profileFor, type CodexProfile } from "./profile.ts";

const run = promisify(execFile);

/** The Codex this package depends on, exactly. */
export const PACKAGED_CODEX_VERSION = "0.144.4";

/** The native Codex and the directory tree it needs; `key`, `hostDir` and `only` are what a sandbox calls its runtime. */
export interface CodexBinary {
  /** Asked for, and checked by {@link checkCodexVersion}. */
  version: string;
  /** What its texts and settings mean. */
  profile: CodexProfile;
  /** Names the content, e.g. "codex-0.144.4". */
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
  /** Which file it was when it was checked, see {@link binaryStamp}; absent: nobody looks whether it still is. */
  stamp?: string;
}

/** Names of the platform packages and of their trees, as @openai/codex's own launcher has them. */
const PLATFORMS: Readonly<Record<string, { name: string; triple: string }>> = {
  "linux-x64": { name: "@openai/codex-linux-x64", triple: "x86_64-unknown-linux-musl" },
  "linux-arm64": { name: "@openai/codex-linux-arm64", triple: "aarch64-unknown-linux-musl" },
  "darwin-x64": { name: "@openai/codex-darwin-x64", triple: "x86_64-apple-darwin" },
  "darwin-arm64": { name: "@openai/codex-darwin-arm64", triple: "aarch64-apple-darwin" },
};

/**
 * Finds the native binary: `codexBin` when given, else in the platform package of @openai/codex as seen from `searchFrom`
 * (this package by default). Throws RollcallError "binary_missing", "codex_version_mismatch" when only another version is installed,
 * or "codex_version_unknown" for one without a profile.
 */
export async function findCodex(wanted: {
  codexBin?: string;
  version: string;
  searchFrom?: URL;
  /** What becomes of a version without a profile. */
  unknown?: "refuse" | "try";
}): Promise<CodexBinary> {
  const profile = profileFor(wanted.version, wanted.unknown);
  return { ...(await locate(wanted)), profile };
}

type Located = Omit<CodexBinary, "profile">;

async function locate(wanted: { codexBin?: string; version: string; searchFrom?: URL }): Promise<Located> {
  if (wanted.codexBin !== undefined) return givenBinary(wanted.codexBin, wanted.version);
  const platform = PLATFORMS[`${process.platform}-${process.arch}`];
  if (platform === undefined) {
    throw new RollcallError(
      "binary_missing",
      `There is no packaged Codex for ${process.platform}-${process.arch}. Name an executable with the codex_bin setting.`,
    );
  }
  const found = await installedPackages(platform.name, wanted.searchFrom ?? new URL(import.meta.url));
  const match = found.find(({ version }) => version === wanted.version);
  if (match === undefined && found[0] !== undefined) throw mismatch(`${platform.name} is`, found[0].version, wanted.version);
  if (match === undefined) {
    throw new RollcallError(
      "binary_missing",
      `The package ${platform.name} with the Codex binary is not installed; npm skips a platform package that fails to download. ` +
        'Install again with "npm ci --include=optional", or name an executable with the codex_bin setting.',
    );
  }
  return inPackage(join(match.directory, "vendor", platform.triple), wanted.version);
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

/** Tells a file from another that took its place. Throws what stat throws. */
export async function binaryStamp({ hostDir, entry }: CodexBinary): Promise<string> {
  const { dev, ino, size, mtimeMs } = await stat(join(hostDir, entry));
  return [dev, ino, size, mtimeMs].join(":");
}

const INSTALL_OR_NAME = "Install it again, or name another executable with the codex_bin setting.";

/** A binary in a package's tree (beside codex-package.json) brings the tree along; any other stands alone. */
async function givenBinary(codexBin: string, version: string): Promise<Located> {
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
    return inPackage(tree, version, basename(path));
  const only = [basename(path)];
  return { version, key: `codex-${version}`, hostDir: dirname(path), entry: basename(path), only, tools: null, bwrap: null };
}

async function inPackage(hostDir: string, version: string, name = "codex"): Promise<Located> {
  const entry = `bin/${name}`;
  if (!(await exists(join(hostDir, entry)))) {
    throw new RollcallError("binary_missing", `${join(hostDir, entry)} is missing from its package. ${INSTALL_OR_NAME}`);
  }
  const bwrap = join(hostDir, "codex-resources", "bwrap");
  return {
    version,
    key: `codex-${version}`,
    hostDir,
    entry,
    tools: (await exists(join(hostDir, "codex-path"))) ? "codex-path" : null,
    bwrap: (await exists(bwrap)) ? bwrap : null,
  };
}

/** Beside @openai/codex as it is resolved, and as seen directly: under an alias the platform package lies elsewhere. */
async function installedPackages(name: string, searchFrom: URL): Promise<{ directory: string; version: string }[]> {
  const here = createRequire(searchFrom);
  const launcher = resolved(here, "@openai/codex/package.json");
  const found = [];
  for (const from of launcher === null ? [here] : [createRequire(await realpath(launcher)), here]) {
    const manifest = resolved(from, `${name}/package.json`);
    if (manifest === null) continue;
    const { version } = JSON.parse(await readFile(manifest, "utf8")) as { version: string };
    // Published as "0.144.4-linux-x64" under the name of the launcher.
    found.push({ directory: dirname(manifest), version: version.split("-")[0] ?? version });
  }
  return found;
}

function resolved(from: NodeJS.Require, name: string): string | null {
  try {
    return from.resolve(name);
  } catch {
    return null; // not installed there
  }
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
