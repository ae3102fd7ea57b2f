// SPDX-License-Identifier: Apache-2.0
import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { hasErrno, RollcallError } from "../errors.ts";
import { makeDirectory } from "../host/directory.ts";
import { checkedCodex, type CodexBinary } from "./binary.ts";
import { removeAbandoned, stagingName } from "./install-staging.ts";
import { CODEX_INTEGRITY } from "./integrity.ts";
import { npm } from "./npm.ts";
import { codexPlatform, type CodexPlatform } from "./package-trees.ts";

/** What was installed, or was there already. */
export interface InstalledCodex {
  codex: CodexBinary;
  /** False when it was there already. */
  fetched: boolean;
  /** npm's digest of the package, "sha512-..."; null when what was there does not tell it. */
  integrity: string | null;
  /** The digest is the one that this Rollcall knows of the version; otherwise it is what npm's registry said. */
  pinned: boolean;
}

/** Beside each installed version: where it is from. */
const RECORD = "installed.json";

/**
 * Puts a version of Codex into `directory`/VERSION through npm: fetched beside, its digest checked against the one that is known here
 * (else the registry's is recorded), asked for its version, and renamed. So two may do it at once, and a version is there whole or not at
 * all. What is there and works stays; what does not is replaced. No script of a package runs. Throws RollcallError
 * "directory_unusable", "binary_missing" where Codex is not published for this platform, or what {@link npm} and {@link checkedCodex}
 * throw.
 */
export async function installCodex(
  version: string,
  directory: string,
  { signal, onFetch = () => undefined }: { signal?: AbortSignal; /** Something is fetched. */ onFetch?: () => void } = {},
): Promise<InstalledCodex> {
  const platform = codexPlatform();
  if (platform === null) {
    const text = `Codex is not published for ${process.platform}-${process.arch}. Name an executable with the codex_bin setting.`;
    throw new RollcallError("binary_missing", text);
  }
  const fix = "set state_dir (ROLLCALL_STATE_DIR) to a directory that this user can write to";
  await makeDirectory(directory, { what: "the place for Codex versions", fix });
  const known = CODEX_INTEGRITY[version]?.[platform.id] ?? null;
  const target = join(directory, version);
  const there = await usable(target, platform, version);
  if (there !== null) return { codex: there, fetched: false, ...(await recorded(target, known)) };

  onFetch();
  await removeAbandoned(directory);
  const staging = join(directory, stagingName());
  try {
    await mkdir(staging, { mode: 0o700 });
    const integrity = await fetchInto(staging, { version, platform, known, signal });
    await inTree(staging, platform, version);
    const record = { version, platform: platform.id, integrity, pinned: known !== null };
    await writeFile(join(staging, RECORD), `${JSON.stringify(record, null, 2)}\n`);
    await putInPlace(staging, target, async () => (await usable(target, platform, version)) !== null);
  } finally {
    await rm(staging, { recursive: true, force: true });
  }
  return { codex: await inTree(target, platform, version), fetched: true, ...(await recorded(target, known)) };
}

/** The version in this directory, checked. */
function inTree(directory: string, { name, triple }: CodexPlatform, version: string): Promise<CodexBinary> {
  const codexBin = join(directory, "node_modules", name, "vendor", triple, "bin", "codex");
  return checkedCodex({ version, codexBin, unknown: "try" });
}

async function usable(directory: string, platform: CodexPlatform, version: string): Promise<CodexBinary | null> {
  return inTree(directory, platform, version).catch(() => null);
}

/** Returns the digest of what was fetched. With `known`, npm refuses anything else. */
async function fetchInto(
  staging: string,
  wanted: { version: string; platform: CodexPlatform; known: string | null; signal: AbortSignal | undefined },
): Promise<string | null> {
  const { version, platform, known, signal } = wanted;
  const place = `node_modules/${platform.name}`;
  const published = `${version}-${platform.id}`;
  const dependencies = { [platform.name]: `npm:@openai/codex@${published}` };
  const root = { name: "codex-for-rollcall", private: true, dependencies };
  await writeFile(join(staging, "package.json"), JSON.stringify(root));
  if (known !== null) {
    const packages = { "": root, [place]: { name: "@openai/codex", version: published, integrity: known } };
    await writeFile(join(staging, "package-lock.json"), JSON.stringify({ name: root.name, lockfileVersion: 3, requires: true, packages }));
  }
  // What is locked never changes: npm's own cache may have it.
  const args = known === null ? ["install"] : ["ci", "--prefer-offline"];
  await npm(args, { directory: staging, what: `Codex ${version} for ${platform.id}`, signal });
  const lock = JSON.parse(await readFile(join(staging, "node_modules", ".package-lock.json"), "utf8")) as {
    packages?: Record<string, { integrity?: string }>;
  };
  return lock.packages?.[place]?.integrity ?? null;
}

/** rename(2) replaces no directory that holds something: what is there is another's, and whole, or is moved away. */
async function putInPlace(staging: string, target: string, isWhole: () => Promise<boolean>): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      return await rename(staging, target);
    } catch (error) {
      if (!(hasErrno(error, "ENOTEMPTY") || hasErrno(error, "EEXIST")) || tries > 5) throw error;
    }
    if (await isWhole()) return;
    const aside = `${staging}.${randomBytes(4).toString("hex")}`;
    await rename(target, aside).catch(() => undefined); // another one did
    await rm(aside, { recursive: true, force: true });
  }
}

async function recorded(directory: string, known: string | null): Promise<{ integrity: string | null; pinned: boolean }> {
  const text = await readFile(join(directory, RECORD), "utf8").catch(() => "{}");
  const { integrity } = JSON.parse(text) as { integrity?: string };
  return { integrity: integrity ?? null, pinned: known !== null && integrity === known };
}
