// SPDX-License-Identifier: Apache-2.0
import { createHash, randomBytes } from "node:crypto";
import { chmod, constants, copyFile, link, lstat, mkdir, readdir, readlink, rename, rm, stat, symlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { hasErrno } from "../errors.ts";
import { isAlive, processIdentity } from "../host/process.ts";
import { removeTree } from "./directories.ts";
import type { SandboxRuntime } from "./types.ts";

interface Entry {
  path: string;
  kind: "directory" | "file" | "link";
  mode: number;
  size: number;
  mtimeMs: number;
}

/**
 * {@link publishRuntime} for all sandboxes of one worker: who wants the same runtime at once waits for one copying, which goes
 * on when nobody waits any more. So a slow disk is copied from once, and not given up and begun again by each sandbox.
 */
export function runtimePublisher(runtimes: string): (runtime: SandboxRuntime) => Promise<string> {
  const running = new Map<string, Promise<string>>();
  return (runtime) => {
    const name = JSON.stringify(runtime);
    const publishing = running.get(name) ?? publishRuntime(runtimes, runtime).finally(() => running.delete(name));
    running.set(name, publishing);
    return publishing;
  };
}

/**
 * A read-only copy of the runtime that every uid may reach, `<runtimes>/<key>-<fingerprint>`, of hard links where the
 * file system allows it. Made once per host: complete from the first moment (rename), so two workers may make it at
 * once. The fingerprint (names, sizes, times) keeps a changed program from being taken for the old one.
 */
export async function publishRuntime(runtimes: string, runtime: SandboxRuntime): Promise<string> {
  const entries: Entry[] = [];
  for (const name of (runtime.only ?? (await readdir(runtime.hostDir))).toSorted()) await list(runtime.hostDir, name, entries);
  const fingerprint = createHash("sha256").update(JSON.stringify(entries)).digest("hex").slice(0, 16);
  const target = join(runtimes, `${runtime.key}-${fingerprint}`);
  if (await isWhole(target, entries)) return target;

  for (const path of await abandonedBuilds(runtimes)) await removeTree(path);
  const building = join(runtimes, buildingName());
  try {
    await mkdir(building);
    await chmod(building, 0o755);
    for (const entry of entries) await copyEntry(runtime.hostDir, building, entry);
    await replaceDamaged(runtimes, target, entries);
    await rename(building, target);
  } catch (error) {
    await rm(building, { recursive: true, force: true });
    if (!(await isWhole(target, entries))) throw error; // else another worker was faster
  }
  return target;
}

/** Somebody may have removed files of it, or all. */
async function isWhole(target: string, entries: readonly Entry[]): Promise<boolean> {
  for (const { path, kind, size } of entries) {
    const there = await lstat(join(target, path)).catch(() => null);
    if (there === null || (kind === "file" && there.size !== size)) return false;
  }
  return exists(target);
}

/** Makes room for a whole copy. Sandboxes that use what is left of the damaged one lose that too. */
async function replaceDamaged(runtimes: string, target: string, entries: readonly Entry[]): Promise<void> {
  if (!(await exists(target)) || (await isWhole(target, entries))) return;
  const aside = join(runtimes, buildingName());
  await rename(target, aside);
  await removeTree(aside);
}

async function list(root: string, path: string, entries: Entry[]): Promise<void> {
  const full = join(root, path);
  let info = await lstat(full);
  if (info.isSymbolicLink()) {
    const to = await stat(full).catch(() => null);
    if (to?.isFile() === true) info = to; // the file itself, wherever it lies
  }
  const kind = info.isDirectory() ? "directory" : info.isSymbolicLink() ? "link" : "file";
  entries.push({ path, kind, mode: info.mode & 0o777, size: kind === "file" ? info.size : 0, mtimeMs: kind === "file" ? info.mtimeMs : 0 });
  if (kind !== "directory") return;
  for (const name of (await readdir(full)).toSorted()) await list(root, join(path, name), entries);
}

async function copyEntry(from: string, to: string, entry: Entry): Promise<void> {
  const source = join(from, entry.path);
  const target = join(to, entry.path);
  await mkdirs(to, dirname(entry.path));
  if (entry.kind === "directory") return mkdirs(to, entry.path);
  if (entry.kind === "link") return symlink(await readlink(source), target);
  const readable = entry.mode | 0o444 | ((entry.mode & 0o111) === 0 ? 0 : 0o111);
  // A link shares its mode with the original, which must stay as it is: link only what everybody may use already.
  if (entry.mode === readable && !(await lstat(source)).isSymbolicLink() && (await linked(source, target))) return;
  await copyFile(source, target, constants.COPYFILE_FICLONE);
  await chmod(target, readable & ~0o022);
}

async function linked(source: string, target: string): Promise<boolean> {
  try {
    await link(source, target);
    return true;
  } catch (error) {
    if (["EXDEV", "EPERM", "EMLINK"].some((code) => hasErrno(error, code))) return false;
    throw error;
  }
}

async function mkdirs(root: string, path: string): Promise<void> {
  let at = root;
  for (const name of path.split("/").filter((name) => name !== ".")) {
    at = join(at, name);
    if (await exists(at)) continue;
    await mkdir(at);
    await chmod(at, 0o755);
  }
}

function buildingName(): string {
  const own = processIdentity();
  return `.building.${own?.pid}.${own?.start_time}.${randomBytes(4).toString("hex")}`;
}

/** What workers were building when they were killed. */
export async function abandonedBuilds(runtimes: string): Promise<string[]> {
  const own = processIdentity();
  return (await readdir(runtimes)).flatMap((name) => {
    const match = /^\.building\.(\d+)\.(\d+)\./u.exec(name);
    if (match === null || own === null) return [];
    return isAlive({ ...own, pid: Number(match[1]), start_time: match[2] ?? "" }) ? [] : [join(runtimes, name)];
  });
}

async function exists(path: string): Promise<boolean> {
  return lstat(path).then(
    () => true,
    () => false,
  );
}
