// SPDX-License-Identifier: Apache-2.0
import { isReferenceProblem, type LocalCopy, type Reference } from "../../references/reference.ts";
import type { ReferenceFiles } from "../../references/reference-files.ts";
import type { Row, RowProblem } from "../task-row.ts";
import type { RowFormat } from "./detect.ts";
import { gdpvalPath, gdpvalRow } from "./gdpval.ts";
import { gymPath, gymRow, type ForeignRow } from "./gym.ts";
import { defaultPromptTemplate, type PromptTemplate } from "./prompt-template.ts";

/** Stands for the sha256 of a file that was only looked at. */
const NOT_MEASURED = "0".repeat(64);

interface ForeignOptions {
  taskset: string;
  /** Chosen by the user; null = ours. */
  template: PromptTemplate | null;
}

/** A row of another format as an activation without defaults; `index` counts the file's rows from 0. Pure. */
export function foreignRow(
  row: Row,
  format: Exclude<RowFormat, "rollcall">,
  index: number,
  options: ForeignOptions,
): ForeignRow & { references: Reference[] } {
  const { taskset, template } = options;
  if (format === "gym") return { ...gymRow(row, index, taskset), references: [] };
  return gdpvalRow(row, index, { taskset, template: template ?? defaultPromptTemplate(), chosen: template !== null });
}

/** How admission's paths are called in a row of the format. */
export function foreignPath(format: RowFormat, path: string): string {
  return format === "gdpval" ? gdpvalPath(path) : gymPath(path);
}

/**
 * Puts a row's reference files among its activation's, by their sha256: neither their bytes nor where they are goes through the
 * queue. With `look` they are neither read nor fetched, and the sha256 stands for nothing.
 */
export async function placeReferences(
  raw: Row,
  references: readonly Reference[],
  files: ReferenceFiles | null,
  mode: "look" | "get",
): Promise<{ raw: Row; copies: LocalCopy[]; problems: RowProblem[] }> {
  if (references.length === 0) return { raw, copies: [], problems: [] };
  const problems: RowProblem[] = [];
  const copies: LocalCopy[] = [];
  const placed: unknown[] = [];
  for (const reference of references) {
    const found = await (mode === "look" ? files?.look(reference) : files?.get(reference));
    if (found === undefined || (found !== null && isReferenceProblem(found))) {
      const { code, message, accepted } = found ?? {
        code: "reference_missing",
        message: "files cannot be had here",
        accepted: "rows without",
      };
      problems.push({ code, path: reference.at, message, accepted });
      continue;
    }
    if (found !== null) copies.push(found);
    placed.push({ path: reference.name, artifact: `sha256:${found?.sha256 ?? NOT_MEASURED}` });
  }
  return { raw: { ...raw, sandbox: { files: placed } }, copies, problems };
}
