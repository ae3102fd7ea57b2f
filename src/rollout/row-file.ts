// SPDX-License-Identifier: Apache-2.0
import { open, rename } from "node:fs/promises";
import { z } from "zod";
import { safeName } from "../contract/identity.ts";
import { hasErrno, RollcallError } from "../errors.ts";
import { replaceFile } from "../host/files.ts";
import { decodeLine, readLines, type FileLine } from "./lines.ts";
import { printable } from "../printable.ts";
import { changedFields, type RowIdentity } from "./row-identity.ts";
import type { Row } from "./task-row.ts";
import { readTasks, type TaskSource } from "./tasks.ts";

/** Where a rollout's deliverables are laid out: the how-many-th rollout of which task. */
export interface RolloutPlace {
  /** Safe as a directory's name; distinct for distinct tasks. */
  task: string;
  /** From 0, in the order of the task file. */
  repeat: number;
}

/** The rows of an output directory as they were read; independent of what becomes of the task file. */
export interface RowFile {
  /** Activation ids, in the order of the task file. */
  readonly ids: readonly string[];
  /** The activation ids of each task, by the task's own id. */
  readonly tasks: ReadonlyMap<string, readonly string[]>;
  placeOf(activationId: string): RolloutPlace | null;
  /** The whole row of a foreign format; null for rows of ours, which may hold secrets and are not kept. */
  rowOf(activationId: string): Promise<Row | null>;
  close(): Promise<void>;
}

/** A row and its ids. */
const MOST_TOLD = 10;
const MAX_LINE_BYTES = 64 * 1024 * 1024;
const lineSchema = z.object({
  task: z.string(),
  /** Earlier versions did not write it. */
  task_id: z.string().optional(),
  /** Of what the row asks for; see {@link RowIdentity}. */
  sha256: z.string(),
  fields: z.record(z.string(), z.string()).catch({}),
  activations: z.array(z.object({ activation_id: z.string(), repeat: z.int() })),
  row: z.record(z.string(), z.unknown()).nullable(),
});

/** Writes rows.jsonl, a line for each usable row; what stood there is replaced when the new one is complete. */
async function writeRowFile(path: string, source: TaskSource): Promise<void> {
  const fresh = `${path}.new`;
  const file = await open(fresh, "w", 0o644);
  const seen = new Map<string, number>();
  try {
    for await (const row of readTasks(source, "check")) {
      if (!row.ok) continue;
      const task = safeName(row.taskId);
      const before = seen.get(task) ?? 0; // rows that name their own ids may share a task
      seen.set(task, before + row.activations.length);
      const activations = row.activations.map(({ activation_id }, index) => ({ activation_id, repeat: before + index }));
      const line = { line: row.line, task_id: row.taskId, task, ...row.identity, activations, row: row.foreign };
      await file.appendFile(`${JSON.stringify(line)}\n`);
    }
    await file.datasync();
  } finally {
    await file.close();
  }
  await rename(fresh, path);
}

/** The same of a run whose rows nobody has here: only which activations each task has, in the order of their names. */
export async function writeRows(path: string, tasks: ReadonlyMap<string, ReadonlySet<string>>): Promise<void> {
  const lines = [...tasks].map(([task_id, ids], index) => {
    const activations = [...ids].toSorted(byNumbers).map((activation_id, repeat) => ({ activation_id, repeat }));
    return `${JSON.stringify({ line: index + 1, task_id, task: safeName(task_id), sha256: "", activations, row: null })}\n`;
  });
  await replaceFile(path, lines.join(""));
}

/** "-r2" before "-r10". */
const byNumbers = new Intl.Collator("en", { numeric: true }).compare;

/** Writes it and opens what it wrote. The caller closes it. */
export async function keepRowFile(path: string, source: TaskSource): Promise<RowFile> {
  await writeRowFile(path, source);
  const rows = await openRowFile(path);
  if (rows === null) throw new RollcallError("out_unusable", `${path} was removed while it was written`);
  return rows;
}

/** What changed since rows.jsonl was written, a sentence each: the first changed rows with their fields, new ones, and how many are gone. */
export async function changedRows(path: string, source: TaskSource): Promise<string[]> {
  const before = new Map<string, RowIdentity>();
  for await (const { bytes } of linesOf(path)) {
    const parsed = lineSchema.safeParse(jsonOf(bytes));
    if (parsed.success) before.set(parsed.data.task, parsed.data);
  }
  if (before.size === 0) return [];
  const told: string[] = [];
  for await (const row of readTasks(source, "check")) {
    if (!row.ok) continue;
    const earlier = before.get(safeName(row.taskId));
    before.delete(safeName(row.taskId));
    if (earlier?.sha256 === row.identity.sha256) continue;
    const fields = earlier === undefined ? [] : changedFields(earlier.fields, row.identity.fields);
    const what = earlier === undefined ? "is new" : fields.length === 0 ? "has changed" : `has changed: ${someOf(fields)}`;
    told.push(`  line ${row.line} (id ${JSON.stringify(row.taskId.slice(0, 80))}) ${what}`);
  }
  const more = told.length > MOST_TOLD ? [`  and ${told.length - MOST_TOLD} rows more`] : [];
  const gone = source.limit === undefined && before.size > 0 ? [`  ${before.size} rows are gone`] : [];
  return [...told.slice(0, MOST_TOLD), ...more, ...gone];
}

function someOf(fields: readonly string[]): string {
  const shown = fields.slice(0, MOST_TOLD).map((field) => printable(field.slice(0, 80)));
  return `${shown.join(", ")}${fields.length > MOST_TOLD ? ", ..." : ""}`;
}

async function* linesOf(path: string): AsyncGenerator<FileLine> {
  try {
    yield* readLines(path, MAX_LINE_BYTES);
  } catch (error) {
    if (!hasErrno(error, "ENOENT")) throw error;
  }
}

/** Opens rows.jsonl; null when there is none (a directory of an earlier version). The caller closes it. */
export async function openRowFile(path: string): Promise<RowFile | null> {
  const file = await open(path).catch((error: unknown) => {
    if (hasErrno(error, "ENOENT")) return null;
    throw error;
  });
  if (file === null) return null;
  const tasks = new Map<string, string[]>();
  const places = new Map<string, RolloutPlace & { offset: number; length: number }>();
  for await (const { bytes, offset, length } of readLines(path, MAX_LINE_BYTES)) {
    const parsed = lineSchema.safeParse(jsonOf(bytes));
    if (!parsed.success) continue;
    const { task, task_id = task, activations } = parsed.data;
    tasks.set(task_id, [...(tasks.get(task_id) ?? []), ...activations.map(({ activation_id }) => activation_id)]);
    for (const { activation_id, repeat } of activations) places.set(activation_id, { task, repeat, offset, length });
  }
  return {
    ids: [...places.keys()],
    tasks,
    placeOf: (activationId) => places.get(activationId) ?? null,
    async rowOf(activationId) {
      const place = places.get(activationId);
      if (place === undefined) return null;
      const { buffer } = await file.read(Buffer.alloc(place.length), 0, place.length, place.offset);
      return lineSchema.parse(jsonOf(buffer)).row;
    },
    close: () => file.close(),
  };
}

function jsonOf(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(decodeLine(bytes) ?? "");
  } catch {
    return null;
  }
}
