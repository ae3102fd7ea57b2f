// SPDX-License-Identifier: Apache-2.0
import { dirname } from "node:path";
import type { LocalCopy, Reference } from "../references/reference.ts";
import type { RowFormat } from "./formats/detect.ts";
import { foreignPath, foreignRow, placeReferences } from "./formats/foreign-row.ts";
import { inlineLocalFiles } from "./local-files.ts";
import { expandRow, shortFormPath, withDefaults, type Row, type RowProblem } from "./task-row.ts";
import type { ReadMode, TaskSource } from "./tasks.ts";

/** A row as a whole activation, with what is wrong with its form and its files. */
export interface SpeltOut {
  raw: Row;
  problems: RowProblem[];
  references: Reference[];
  inputs: LocalCopy[];
  /** How the row itself calls a field of the activation. */
  pathOf: (path: string) => string;
}

/** One row in the words of an activation, defaults filled in; `raw` null: nothing more can be said of it. */
export async function spellOut(
  source: Pick<TaskSource, "path" | "defaults" | "promptTemplate" | "referenceFiles">,
  row: Row,
  index: number,
  format: RowFormat,
  files: ReadMode,
): Promise<SpeltOut | { raw: null; problems: RowProblem[] }> {
  const { defaults, promptTemplate: template = null, referenceFiles = null } = source;
  if (format === "rollcall") {
    const expanded = expandRow(row, defaults);
    if ("problems" in expanded) return { raw: null, problems: expanded.problems };
    const inlined = await inlineLocalFiles(expanded.raw, dirname(source.path), files);
    return { ...inlined, references: [], inputs: [], pathOf: Object.hasOwn(row, "id") ? shortFormPath : (path) => path };
  }
  const foreign = foreignRow(row, format, index, { taskset: defaults.taskset, template });
  const placed = await placeReferences(foreign.raw, foreign.references, referenceFiles, files === "check" ? "look" : "get");
  return {
    raw: withDefaults(placed.raw, defaults),
    problems: [...foreign.problems, ...placed.problems],
    references: foreign.references,
    inputs: placed.copies,
    pathOf: (path) => foreignPath(format, path),
  };
}
