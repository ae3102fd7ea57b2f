// SPDX-License-Identifier: Apache-2.0
import { mkdir, readFile, rmdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import { z } from "zod";
import { hasErrno, messageOf, RollcallError } from "../errors.ts";
import { whyUnusable } from "../host/directory.ts";
import { replaceFile } from "../host/files.ts";
import { takeLockFile } from "../host/lock-file.ts";

/** Names inside an output directory. */
export const OUTPUT_FILES = {
  manifest: "manifest.json",
  results: "results.jsonl",
  failures: "failures.jsonl",
  summary: "summary.json",
  coverage: "coverage.json",
  budget: "budget.json",
  rows: "rows.jsonl",
  log: "rollcall.log",
  artifacts: "artifacts",
  lock: ".lock",
} as const;

/** What makes results comparable: a directory holds one task file run with one of these. */
const comparableSchema = z.record(z.string(), z.json());

const manifestSchema = z.looseObject({
  schema: z.literal("rollcall.manifest/1"),
  run_id: z.string(),
  created_at: z.string(),
  /** Of a run that was made elsewhere and brought here: from where. */
  pulled_from: z.string().optional(),
  tasks: z.looseObject({
    path: z.string(),
    sha256: z.string(),
    /** Of its rows, however they are written and whatever the values of their secrets; earlier directories do not say. */
    rows_sha256: z.string().optional(),
    /** null: it is in no repository, or there is no git. */
    git: z.object({ commit: z.string(), modified: z.boolean() }).nullable().optional(),
  }),
  /** Those under which results compare; null = the default. */
  settings: comparableSchema,
  /** The others of the first start, without what may be secret. */
  other_settings: comparableSchema.optional(),
  versions: z.record(z.string(), z.string()),
  /** False: no start came so far as to queue something, so it takes another task file and other settings. Earlier directories do not say. */
  queued: z.boolean().optional(),
});
export type Manifest = z.infer<typeof manifestSchema>;

export interface OutputDir {
  readonly path: string;
  file(name: keyof typeof OUTPUT_FILES): string;
  /** null in a directory that was not used before. */
  readonly manifest: Manifest | null;
  /** Pid of a dead process whose lock was taken over: its run was cut off. */
  readonly tookOverFrom: number | null;
  writeManifest(manifest: Manifest): Promise<void>;
  /** Gives the lock back; removes the directory when it was made here and nothing is in it. */
  close(): Promise<void>;
}

/**
 * Makes or opens an output directory and locks it. Throws RollcallError "out_unusable", "out_locked" (naming the live
 * holder) or "out_foreign" (there is a manifest.json that is not ours).
 */
export async function openOutputDir(path: string): Promise<OutputDir> {
  const root = resolve(path);
  const lockPath = join(root, OUTPUT_FILES.lock);
  let made = false;
  let lock;
  try {
    made = (await mkdir(root, { recursive: true })) !== undefined;
    lock = await takeLockFile(lockPath);
  } catch (error) {
    if (made) await rmdir(root).catch(() => undefined);
    throw new RollcallError("out_unusable", `cannot use ${root} as the output directory: ${whyUnusable(error)}; choose another --out`, {
      cause: error,
    });
  }
  if (!lock.held) {
    const { holder } = lock;
    const who =
      holder === null
        ? `a process that ${lockPath} does not name (remove that file if there is none)`
        : `process ${holder.pid} on ${holder.host}`;
    throw new RollcallError("out_locked", `${root} is in use by ${who}; wait for it, end it, or choose another --out`);
  }
  const close = async (): Promise<void> => {
    await lock.release();
    if (made) await rmdir(root).catch(() => undefined); // fails when something was written, as it should
  };
  try {
    return {
      path: root,
      file: (name) => join(root, OUTPUT_FILES[name]),
      manifest: await readManifest(root),
      tookOverFrom: lock.tookOverFrom?.pid ?? null,
      writeManifest: (manifest) => replaceFile(join(root, OUTPUT_FILES.manifest), `${JSON.stringify(manifest, null, 2)}\n`),
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** The manifest of an output directory; null when there is none. Throws RollcallError "out_foreign". */
export async function readManifest(root: string): Promise<Manifest | null> {
  const path = join(root, OUTPUT_FILES.manifest);
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    if (hasErrno(error, "ENOENT")) return null;
    throw new RollcallError("out_unusable", `cannot read ${path}: ${messageOf(error)}`, { cause: error });
  }
  try {
    return manifestSchema.parse(JSON.parse(text));
  } catch (error) {
    throw new RollcallError("out_foreign", `${path} was not written by this program; choose another --out`, { cause: error });
  }
}

/** Whether two task files ask for the same, however they are written. Pure. */
export function sameTasks(one: Manifest["tasks"], other: Manifest["tasks"]): boolean {
  return one.sha256 === other.sha256 || (one.rows_sha256 !== undefined && one.rows_sha256 === other.rows_sha256);
}

/** Refuses to mix two task files, or results that cannot be compared, in one directory. Pure but for throwing "out_foreign". */
export function requireSameRun(root: string, manifest: Manifest, wanted: Pick<Manifest, "tasks" | "settings">): void {
  if (!sameTasks(manifest.tasks, wanted.tasks)) {
    throw new RollcallError(
      "out_foreign",
      `${root} belongs to another task file (${manifest.tasks.path}, sha256 ${manifest.tasks.sha256.slice(0, 12)}; ` +
        `${wanted.tasks.path} has ${wanted.tasks.sha256.slice(0, 12)}): choose another --out, or restore the file`,
    );
  }
  const names = [...new Set([...Object.keys(manifest.settings), ...Object.keys(wanted.settings)])].sort();
  const changed = names.filter((name) => JSON.stringify(manifest.settings[name] ?? null) !== JSON.stringify(wanted.settings[name] ?? null));
  if (changed.length > 0) {
    const shown = changed.map(
      (name) => `  ${name}: ${JSON.stringify(manifest.settings[name] ?? null)} there, ${JSON.stringify(wanted.settings[name] ?? null)} now`,
    );
    throw new RollcallError(
      "out_foreign",
      `${root} was started with other settings, so its results would not compare:\n${shown.join("\n")}\nUse those again, or choose another --out`,
    );
  }
}
