// SPDX-License-Identifier: Apache-2.0
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

export interface GdpvalRow {
  task_id: string;
  prompt: string;
  sector: string;
  reference_files: string[];
  reference_file_urls: string[];
  [field: string]: unknown;
}

/** The five sample rows of the benchmark. The caller's own: it may change them. */
export function gdpvalRows(): GdpvalRow[] {
  return readFileSync(new URL("../fixtures/gdpval/rows.jsonl", import.meta.url), "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as GdpvalRow);
}

/** What stands in for a row's reference file. */
export const referenceText = (path: string): string => `local ${path}\n`;

/** Small files in place of a row's own, beside the task file. */
export function writeReferences(directory: string, { reference_files }: GdpvalRow): void {
  for (const path of reference_files) {
    mkdirSync(dirname(join(directory, path)), { recursive: true });
    writeFileSync(join(directory, path), referenceText(path));
  }
}
