// SPDX-License-Identifier: Apache-2.0
import { execFile } from "node:child_process";
import { constants } from "node:fs";
import { access, lstat, realpath } from "node:fs/promises";
import { basename, delimiter, dirname, isAbsolute, join } from "node:path";
import { promisify } from "node:util";
import { REQUIRED_OPTIONS } from "./bubblewrap-profile.ts";
import { publishRuntime } from "./runtime-copy.ts";

const run = promisify(execFile);

/** A bwrap as it is found: what it calls itself, and the options it knows. */
export interface BubblewrapBinary {
  path: string;
  version: string;
  options: ReadonlySet<string>;
}

/**
 * The first bwrap of `path` (as in $PATH) that runs and knows every option we need, else the vendored one; null when
 * neither does.
 */
export async function findBubblewrap(places: { path: string; vendored?: string }): Promise<string | null> {
  const candidates = places.path
    .split(delimiter)
    .filter(isAbsolute)
    .map((directory) => join(directory, "bwrap"));
  if (places.vendored !== undefined) candidates.push(places.vendored);
  for (const candidate of candidates) {
    const binary = await inspectBubblewrap(candidate).catch(() => null);
    if (binary !== null && missingOptions(binary).length === 0) return candidate;
  }
  return null;
}

/** Asks the binary itself. Throws what running it throws. */
export async function inspectBubblewrap(path: string): Promise<BubblewrapBinary> {
  await access(path, constants.X_OK);
  const [version, help] = await Promise.all([run(path, ["--version"], { env: {} }), run(path, ["--help"], { env: {} })]);
  return {
    path,
    version: version.stdout.trim(),
    options: new Set((help.stdout + help.stderr).match(/^\s+--[a-z0-9-]+/gmu)?.map((option) => option.trim())),
  };
}

export function missingOptions(binary: BubblewrapBinary): string[] {
  return REQUIRED_OPTIONS.filter((option) => !binary.options.has(option));
}

/** Where an unprivileged uid can run this bwrap: in its place, or in a copy among the shared runtimes. */
export async function reachableBubblewrap(path: string, runtimes: string): Promise<string> {
  const real = await realpath(path);
  if (await everybodyCanRun(real)) return real;
  const only = [basename(real)];
  return join(await publishRuntime(runtimes, { key: "bwrap", hostDir: dirname(real), only }), basename(real));
}

async function everybodyCanRun(path: string): Promise<boolean> {
  for (let at = path; ; at = dirname(at)) {
    if (((await lstat(at)).mode & 0o001) === 0) return false;
    if (at === dirname(at)) return true;
  }
}
