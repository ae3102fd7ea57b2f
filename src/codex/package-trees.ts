// SPDX-License-Identifier: Apache-2.0
import { readdir, readFile, realpath } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { PROFILED_VERSIONS } from "./profile.ts";

/** Names of the platform packages and of their trees, as @openai/codex's own launcher has them. */
const PLATFORMS: Readonly<Record<string, { name: string; triple: string }>> = {
  "linux-x64": { name: "@openai/codex-linux-x64", triple: "x86_64-unknown-linux-musl" },
  "linux-arm64": { name: "@openai/codex-linux-arm64", triple: "aarch64-unknown-linux-musl" },
  "darwin-x64": { name: "@openai/codex-darwin-x64", triple: "x86_64-apple-darwin" },
  "darwin-arm64": { name: "@openai/codex-darwin-arm64", triple: "aarch64-apple-darwin" },
};

export interface CodexPlatform {
  /** e.g. "linux-x64", with which npm's versions end. */
  id: string;
  /** Name of the package as Codex's launcher depends on it. */
  name: string;
  triple: string;
}

/** This machine's; null = Codex is not published for it. */
export function codexPlatform(): CodexPlatform | null {
  const id = `${process.platform}-${process.arch}`;
  const known = PLATFORMS[id];
  return known === undefined ? null : { id, ...known };
}

/** A version of Codex and its vendor/<triple>. */
export interface CodexTree {
  version: string;
  hostDir: string;
}

/**
 * What is on this machine, each version once, without running any: first the packages among the dependencies of `searchFrom` (this
 * package by default), as @openai/codex and under an alias codex-VERSION, then what lies in `installedIn`.
 */
export async function codexTrees({
  version,
  installedIn,
  searchFrom = new URL(import.meta.url),
}: {
  /** Looked for although it may have no profile. */
  version?: string;
  installedIn?: string;
  searchFrom?: URL;
}): Promise<CodexTree[]> {
  const platform = codexPlatform();
  if (platform === null) return [];
  const aliases = [...PROFILED_VERSIONS, ...(version === undefined ? [] : [version])].map((one) => `codex-${one}`);
  const found = [
    ...(await packaged(platform, createRequire(searchFrom), ["@openai/codex", ...aliases])),
    ...(installedIn === undefined ? [] : await installed(platform, installedIn)),
  ];
  return found.filter((tree, index) => found.findIndex((other) => other.version === tree.version) === index);
}

/** The platform package is beside the launcher that wants it, or, since npm lifts it, seen directly. */
async function packaged({ name, triple }: CodexPlatform, here: NodeJS.Require, launchers: string[]): Promise<CodexTree[]> {
  const found: CodexTree[] = [];
  for (const launcher of [...launchers.map((one) => resolved(here, `${one}/package.json`)), "here"]) {
    if (launcher === null) continue;
    const manifest = resolved(launcher === "here" ? here : createRequire(await realpath(launcher)), `${name}/package.json`);
    if (manifest === null) continue;
    const { version } = JSON.parse(await readFile(manifest, "utf8")) as { version: string };
    // Published as "0.171.0-linux-x64" under the name of the launcher.
    found.push({ version: version.split("-")[0] ?? version, hostDir: join(dirname(manifest), "vendor", triple) });
  }
  return found;
}

/** Each version has a directory of its name, in place from the moment that it is whole (install.ts). */
async function installed({ name, triple }: CodexPlatform, directory: string): Promise<CodexTree[]> {
  const names = await readdir(directory).catch(() => []);
  const versions = names.filter((one) => /^\d+\.\d+\.\d+$/.test(one)).toSorted();
  return versions.map((version) => ({ version, hostDir: join(directory, version, "node_modules", name, "vendor", triple) }));
}

function resolved(from: NodeJS.Require, name: string): string | null {
  try {
    return from.resolve(name);
  } catch {
    return null; // not installed there
  }
}
