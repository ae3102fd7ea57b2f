// SPDX-License-Identifier: Apache-2.0
import { readFile, stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { z } from "zod";
import { RollcallError } from "../errors.ts";
import { readHolder } from "../host/lock-file.ts";
import { isAlive } from "../host/process.ts";
import { MAX_RESULT_LINE_BYTES } from "../rollout/json-lines.ts";
import { decodeLine, readLines } from "../rollout/lines.ts";
import { OUTPUT_FILES, readManifest, type Manifest } from "../rollout/output-dir.ts";
import { rolloutRow, type RolloutRow } from "./rollout-row.ts";

/** An output directory as a report sees it; nothing in it is changed. */
export interface RecordedRun {
  path: string;
  manifest: Manifest;
  /** Rollouts that the last start asked for; null = summary.json does not say. */
  total: number | null;
  interrupted: boolean;
  /** The last start was ended by this limit of its budget. */
  stopped_by: string | null;
  /** A process works on it right now: what is there is not all. */
  running: boolean;
}

const summarySchema = z.object({
  total: z.int().min(0),
  interrupted: z.boolean(),
  budget: z.object({ stopped_by: z.string().nullable() }).nullable().catch(null),
});

/**
 * Opens an output directory for reading. Throws RollcallError "out_unknown" (no such directory), "out_empty" (it holds no run),
 * "out_foreign", and "out_running" unless `partial`.
 */
export async function openRun(path: string, { partial }: { partial: boolean }): Promise<RecordedRun> {
  const root = resolve(path);
  const found = await stat(root).catch(() => null);
  if (found?.isDirectory() !== true)
    throw new RollcallError("out_unknown", `there is no directory ${root}: name the output directory of a run`);
  const manifest = await readManifest(root);
  if (manifest === null)
    throw new RollcallError("out_empty", `${root} holds no run (there is no manifest.json): name the output directory of one`);
  const holder = await readHolder(join(root, OUTPUT_FILES.lock));
  const running = holder !== null && isAlive(holder);
  if (running && !partial)
    throw new RollcallError(
      "out_running",
      `process ${holder.pid} on ${holder.host} still works on ${root}: wait for it, or say --partial for what is there so far`,
    );
  const summary = running ? null : await readSummary(join(root, OUTPUT_FILES.summary));
  return {
    path: root,
    manifest,
    total: summary?.total ?? null,
    interrupted: summary?.interrupted ?? !running,
    stopped_by: summary?.budget?.stopped_by ?? null,
    running,
  };
}

async function readSummary(path: string): Promise<z.infer<typeof summarySchema> | null> {
  try {
    return summarySchema.parse(JSON.parse(await readFile(path, "utf8")));
  } catch {
    return null; // none yet, or cut off: then the results say how many there are
  }
}

/** One row an activation, in the order of their first lines; of several lines the last counts. Holds one line at a time. */
export async function readRows(run: RecordedRun): Promise<Map<string, RolloutRow & { line: number }>> {
  const rows = new Map<string, RolloutRow & { line: number }>();
  for await (const { value, number } of readValues(join(run.path, OUTPUT_FILES.results))) {
    const row = rolloutRow(value);
    if (row !== null) rows.set(row.activation_id, { ...row, line: number });
  }
  return rows;
}

/** The JSON values of a file of lines; what is none, e.g. a torn last line, is passed over. A file that is not there has none. */
export async function* readValues(path: string): AsyncGenerator<{ value: unknown; number: number }> {
  if ((await stat(path).catch(() => null)) === null) return;
  for await (const line of readLines(path, MAX_RESULT_LINE_BYTES)) {
    const text = line.tooLong ? null : decodeLine(line.bytes);
    if (text === null || text === "") continue;
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch {
      continue;
    }
    yield { value, number: line.number };
  }
}
