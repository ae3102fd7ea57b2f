// SPDX-License-Identifier: Apache-2.0
import { decodeLine, readLines } from "../lines.ts";
import { isRow, parseRow, type Row, type RowProblem } from "../task-row.ts";

/** How the rows of a task file are written (docs/rows.md). */
export const ROW_FORMATS = ["rollcall", "gym", "gdpval"] as const;
export type RowFormat = (typeof ROW_FORMATS)[number];

/** The format of a file, and why: given, or by the first line that looks like one. */
export interface FileFormat {
  format: RowFormat;
  /** null: it was given, or no row looks like any. */
  seen: { line: number; fields: string } | null;
  given: boolean;
}

/** So many rows are looked at before the file is taken for one of ours. */
const MOST_ROWS = 100;
/** Two of them make a row one of GDPVal, so that one is missed by name. */
const GDPVAL_FIELDS = ["prompt", "sector", "occupation", "reference_files", "reference_file_urls", "rubric_json"];
const NAMES: Record<RowFormat, string> = { rollcall: "Rollcall", gym: "Gym", gdpval: "GDPVal" };

/** What a row looks like, by the names of its fields; null = like none. Pure. */
function looksLike(row: Row): { format: RowFormat; fields: string } | null {
  const gdpval = GDPVAL_FIELDS.filter((field) => Object.hasOwn(row, field));
  if (gdpval.length > 1) return { format: "gdpval", fields: gdpval.join(", ") };
  if (Object.hasOwn(row, "responses_create_params")) return { format: "gym", fields: "responses_create_params" };
  const own = ["id", "input"].filter((field) => Object.hasOwn(row, field));
  if (isRow(row["task_id"])) own.push("task_id with a taskset");
  return own.length === 0 ? null : { format: "rollcall", fields: own.join(", ") };
}

/** The format of a file: the first row that looks like one decides. Reads only its beginning. */
export async function detectFormat(path: string, maxRowBytes: number): Promise<FileFormat> {
  let rows = 0;
  for await (const line of readLines(path, maxRowBytes)) {
    const text = line.tooLong ? null : decodeLine(line.bytes);
    if (text === null || text.trim() === "") continue;
    const parsed = parseRow(text);
    const found = "row" in parsed ? looksLike(parsed.row) : null;
    if (found !== null) return { format: found.format, seen: { line: line.number, fields: found.fields }, given: false };
    if (++rows === MOST_ROWS) break;
  }
  return { format: "rollcall", seen: null, given: false };
}

/**
 * What is wrong with the format of one row, given that of its file; null = nothing. A format that was given is believed where
 * the row can be read so: a GDPVal row is a Gym row too. Pure.
 */
export function formatProblem(row: Row, file: FileFormat): RowProblem | null {
  const like = looksLike(row);
  if (like === null || like.format === file.format) return null;
  if (file.given && file.format !== "rollcall" && Object.hasOwn(row, NEEDED[file.format])) return null;
  const why = file.given
    ? `--format ${file.format} was given`
    : `line ${file.seen?.line ?? 1} is one (it has ${file.seen?.fields ?? "none"})`;
  return {
    code: "format_mixed",
    path: "",
    message: `it looks like a ${NAMES[like.format]} row (it has ${like.fields}), and the file is read as ${NAMES[file.format]} rows: ${why}`,
    accepted: `only ${NAMES[file.format]} rows; or --format ${like.format}`,
  };
}

const NEEDED = { gym: "responses_create_params", gdpval: "prompt" } as const;
