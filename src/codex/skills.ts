// SPDX-License-Identifier: Apache-2.0
import { createHash } from "node:crypto";
import { opendir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { messageOf, RollcallError } from "../errors.ts";

interface SkillFile {
  /** Relative to its skill, forward slashes. */
  path: string;
  bytes: Buffer;
  executable: boolean;
}

/** The skills of a worker by name, as they were when it started. */
export interface SkillSet {
  /** Sorted. */
  readonly names: readonly string[];
  /** Of all files with their names; null = there are none. */
  readonly sha256: string | null;
  filesOf(name: string): readonly SkillFile[];
}

export const NO_SKILLS: SkillSet = { names: [], sha256: null, filesOf: () => [] };

/** They are held in memory and copied into each sandbox. */
const MAX_FILES = 1_000;
const MAX_BYTES = 20 * 1024 * 1024;
const MAX_DEPTH = 8;
/** Codex keeps its own skills in a hidden directory beside them. */
const SKILL_NAME = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/;
const ENTRY = "SKILL.md";

/**
 * Reads a directory of skills: one directory each, with a SKILL.md that says its name and description (without, Codex does not
 * offer it; seen in 0.144.4). Links are refused, wherever they lead, so that nothing from outside gets into a sandbox. Throws RollcallError
 * "skills_unusable".
 */
export async function readSkills(root: string): Promise<SkillSet> {
  const skills = new Map<string, SkillFile[]>();
  const room = { files: MAX_FILES, bytes: MAX_BYTES };
  for (const { name, directory } of await entriesOf(root)) {
    if (!directory || !SKILL_NAME.test(name))
      throw unusable(join(root, name), "only directories called [A-Za-z0-9][A-Za-z0-9_-]* may be here");
    const files = await filesIn(join(root, name), "", MAX_DEPTH, room);
    const entry = files.find(({ path }) => path === ENTRY)?.bytes.toString("utf8");
    if (entry === undefined) throw unusable(join(root, name), `it has no ${ENTRY}`);
    if (!/^---\r?\n(?=[^]*?^name:\s*\S)(?=[^]*?^description:\s*\S)[^]*?^---\s*$/m.test(entry))
      throw unusable(join(root, name, ENTRY), "it does not begin with a front matter that has a name and a description");
    skills.set(name, files);
  }
  const names = [...skills.keys()].sort();
  const digest = createHash("sha256");
  for (const name of names) {
    for (const { path, bytes, executable } of skills.get(name) ?? [])
      digest.update(`${JSON.stringify([name, path, executable, bytes.length])}\n`).update(bytes);
  }
  return { names, sha256: names.length === 0 ? null : digest.digest("hex"), filesOf: (name) => skills.get(name) ?? [] };
}

/** The skills of a worker's configuration; none without a directory. Throws RollcallError "skills_unusable". */
export function skillsIn(root: string | undefined): Promise<SkillSet> {
  return root === undefined ? Promise.resolve(NO_SKILLS) : readSkills(root);
}

async function filesIn(root: string, below: string, depth: number, room: { files: number; bytes: number }): Promise<SkillFile[]> {
  const files: SkillFile[] = [];
  for (const { name, directory } of await entriesOf(join(root, below))) {
    const path = below === "" ? name : `${below}/${name}`;
    if (directory) {
      if (depth === 0) throw unusable(join(root, path), `it is deeper than ${MAX_DEPTH} directories`);
      files.push(...(await filesIn(root, path, depth - 1, room)));
      continue;
    }
    const { size, mode } = await stat(join(root, path));
    room.files--;
    room.bytes -= size;
    if (room.files < 0 || room.bytes < 0)
      throw unusable(join(root, path), `with it the skills have over ${MAX_FILES} files or ${MAX_BYTES} bytes`);
    files.push({ path, bytes: await readFile(join(root, path)), executable: (mode & 0o100) !== 0 });
  }
  return files;
}

/** Sorted, so that equal directories have equal digests. */
async function entriesOf(directory: string): Promise<{ name: string; directory: boolean }[]> {
  const entries: { name: string; directory: boolean }[] = [];
  try {
    for await (const entry of await opendir(directory)) {
      if (!entry.isDirectory() && !entry.isFile()) throw unusable(join(directory, entry.name), "it is a link or no regular file");
      entries.push({ name: entry.name, directory: entry.isDirectory() });
      if (entries.length > MAX_FILES) throw unusable(directory, `it has over ${MAX_FILES} entries`);
    }
  } catch (error) {
    if (error instanceof RollcallError) throw error;
    throw unusable(directory, messageOf(error));
  }
  return entries.sort((a, b) => (a.name < b.name ? -1 : 1));
}

function unusable(path: string, why: string): RollcallError {
  return new RollcallError("skills_unusable", `cannot use ${path} as a skill: ${why} (skills_dir)`);
}
