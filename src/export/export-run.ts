// SPDX-License-Identifier: Apache-2.0
import { mkdir, open, readFile, rename, rm, type FileHandle } from "node:fs/promises";
import { join, resolve } from "node:path";
import { z } from "zod";
import type { EvidenceSource } from "../artifacts/open-evidence.ts";
import { activationIdSchema } from "../contract/identity.ts";
import { hasErrno, messageOf, RollcallError } from "../errors.ts";
import { replaceFile } from "../host/files.ts";
import { OUTPUT_FILES } from "../rollout/output-dir.ts";
import { openRun, readRows, readValues, type RecordedRun } from "../report/read-run.ts";
import { FORMAT_WRITERS, type ExportFormat } from "./formats.ts";
import { readPrompt } from "./prompt.ts";
import { trajectoryOf, type AboutRollout } from "./trajectory.ts";

const ABOUT_FILE = "export.json";
const INDEX_FILE = "index.jsonl";

export interface ExportRequest {
  out: string;
  format: ExportFormat;
  /** null = `export/<format>` in the output directory. */
  to: string | null;
  /** Also while a process works on the run. */
  partial: boolean;
  readonly openEvidence: (defaultRoot: string) => Promise<EvidenceSource>;
}

/** export.json: what an export is of, and what is not in it. */
export interface ExportAbout {
  schema: "rollcall.export/1";
  run_id: string;
  format: ExportFormat;
  format_version: string;
  rollouts: number;
  exported: number;
  /** Without a word of the agent, e.g. refused ones. */
  no_conversation: string[];
  unreadable: string[];
  without_prompt: number;
  /** Rollouts with files in which a secret was found; index.jsonl names them. Files are never copied. */
  with_quarantined_artifacts: number;
}

const aboutSchema = z.object({ schema: z.literal("rollcall.export/1"), run_id: z.string(), format: z.string() });

/**
 * Writes the trajectories of a run, one at a time, and index.jsonl, which says of each what it is. Exported again, the files are
 * written anew. Throws what {@link openRun} throws, "export_foreign" (another export is there) and "out_unusable".
 */
export async function exportRun({
  out,
  format,
  to,
  partial,
  openEvidence,
}: ExportRequest): Promise<{ directory: string; about: ExportAbout }> {
  const run = await openRun(out, { partial });
  const store = await openEvidence(join(run.path, OUTPUT_FILES.artifacts));
  const directory = resolve(to ?? join(run.path, "export", format));
  await claim(directory, run, format);
  try {
    return { directory, about: await writeAll(directory, run, format, store) };
  } catch (error) {
    throw new RollcallError("out_unusable", `the export to ${directory} broke off: ${messageOf(error)}`, { cause: error });
  }
}

/** An export.json is there from the first moment: what lies beside it is ours to write anew. */
async function claim(directory: string, run: RecordedRun, format: ExportFormat): Promise<void> {
  const path = join(directory, ABOUT_FILE);
  try {
    await mkdir(directory, { recursive: true });
    const there = aboutSchema.safeParse(JSON.parse(await readFile(path, "utf8")));
    if (there.data?.run_id === run.manifest.run_id && there.data.format === format) return;
    const what = there.success ? `the ${there.data.format} export of run ${there.data.run_id}` : "something else";
    throw new RollcallError("export_foreign", `${directory} holds ${what}; choose another --to`);
  } catch (error) {
    if (error instanceof RollcallError) throw error;
    if (!hasErrno(error, "ENOENT"))
      throw new RollcallError("out_unusable", `cannot export to ${directory}: ${messageOf(error)}; choose another --to`, { cause: error });
  }
  await replaceFile(path, `${JSON.stringify({ schema: "rollcall.export/1", run_id: run.manifest.run_id, format })}\n`);
}

async function writeAll(directory: string, run: RecordedRun, format: ExportFormat, store: EvidenceSource): Promise<ExportAbout> {
  const { version, files, write } = FORMAT_WRITERS[format];
  const rows = await readRows(run);
  const about: ExportAbout = {
    schema: "rollcall.export/1",
    run_id: run.manifest.run_id,
    format,
    format_version: version,
    rollouts: rows.size,
    exported: 0,
    no_conversation: [],
    unreadable: [],
    without_prompt: 0,
    with_quarantined_artifacts: 0,
  };
  const index = await openLines(join(directory, INDEX_FILE));
  const lines = files === "lines" ? await openLines(join(directory, `${format}.jsonl`)) : null;
  try {
    for await (const { value, number } of readValues(join(run.path, OUTPUT_FILES.results))) {
      const { activation_id: id } = value as { activation_id: string };
      const row = rows.get(id);
      if (row?.line !== number) continue; // no result, or one that a later line replaces
      if (row.quarantined > 0) about.with_quarantined_artifacts++;
      const isSafe = activationIdSchema.safeParse(id).success;
      const attempt = row.attempts.at(-1)?.attempt;
      const prompt = isSafe && attempt !== undefined ? await readPrompt(store, id, attempt) : null;
      const trajectory = isSafe ? trajectoryOf(value, prompt) : "unreadable";
      if (typeof trajectory === "string") {
        about[trajectory].push(id);
        continue;
      }
      const text = JSON.stringify(write(trajectory));
      if (lines !== null) await lines.add(text);
      else await writeWhole(join(directory, `${id}.json`), text);
      await index.add(JSON.stringify(entryOf(trajectory.about, lines === null ? { file: `${id}.json` } : { line: about.exported + 1 })));
      about.exported++;
      if (prompt === null) about.without_prompt++;
    }
    await lines?.keep();
    await index.keep();
  } finally {
    await lines?.drop();
    await index.drop();
  }
  await replaceFile(join(directory, ABOUT_FILE), `${JSON.stringify(about, null, 2)}\n`);
  return about;
}

function entryOf(about: AboutRollout, place: { file: string } | { line: number }): object {
  return { ...place, ...about };
}

/** A file of lines that takes the place of the earlier one when it is complete. */
async function openLines(path: string): Promise<{ add(text: string): Promise<void>; keep(): Promise<void>; drop(): Promise<void> }> {
  const coming = `${path}.new`;
  const file: FileHandle = await open(coming, "w", 0o644);
  let isOpen = true;
  const close = async (): Promise<void> => {
    if (isOpen) await file.close();
    isOpen = false;
  };
  return {
    add: (text) => file.appendFile(`${text}\n`),
    async keep() {
      await file.datasync();
      await close();
      await rename(coming, path);
    },
    async drop() {
      await close();
      await rm(coming, { force: true });
    },
  };
}

async function writeWhole(path: string, text: string): Promise<void> {
  const lines = await openLines(path);
  try {
    await lines.add(text);
    await lines.keep();
  } finally {
    await lines.drop();
  }
}
