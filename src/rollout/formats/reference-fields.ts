// SPDX-License-Identifier: Apache-2.0
import { fileURLToPath } from "node:url";
import { isAbsolute } from "node:path";
import type { Reference, ReferenceSource } from "../../references/reference.ts";
import { safeFileNames } from "../../references/safe-names.ts";
import type { Row, RowProblem } from "../task-row.ts";

/** A row of the benchmark has up to 17. */
const MAX_REFERENCES = 200;
const PATHS = "reference_files";
const URLS = "reference_file_urls";
const HASHES = "reference_file_sha256s";

/**
 * The files of a GDPVal row, in its order: `reference_files` (relative to the task file), else `reference_file_urls` (https, file,
 * or an absolute path); `reference_file_sha256s` when the row has it. Pure.
 */
export function referencesOf(row: Row, folder: string): { references: Reference[]; problems: RowProblem[] } {
  const problems: RowProblem[] = [];
  const [paths, urls, hashes] = [PATHS, URLS, HASHES].map((field) => list(row[field], field, problems)) as [Texts, Texts, Texts];
  const count = Math.max(paths?.length ?? 0, urls?.length ?? 0);
  for (const [field, values] of [
    [PATHS, paths],
    [URLS, urls],
    [HASHES, hashes],
  ] as const) {
    if (values === null || values.length === count) continue;
    problems.push(
      problem(field, `it has ${values.length} entries, and there are ${count} files`, "one entry for each file, in the same order"),
    );
  }
  if (count > MAX_REFERENCES) problems.push(problem(PATHS, `there are ${count} files`, `at most ${MAX_REFERENCES}`));
  if (problems.length > 0 || count === 0) return { references: [], problems };

  const field = paths === null ? URLS : PATHS;
  const names = safeFileNames(Array.from({ length: count }, (_, index) => paths?.[index] ?? lastOf(urls![index]!)));
  const references = names.map((name, index): Reference => {
    const sources: ReferenceSource[] = [];
    const path = paths?.[index];
    if (path !== undefined) sources.push({ kind: "file", path });
    const url = urls?.[index];
    if (url !== undefined) {
      const source = sourceOf(url);
      if (source === null)
        problems.push(problem(`${URLS}[${index}]`, "it is no https or file URL and no absolute path", "e.g. https://HOST/FILE"));
      else sources.push(source);
    }
    const sha256 = hashes?.[index];
    if (sha256 !== undefined && !/^[0-9a-f]{64}$/i.test(sha256))
      problems.push(problem(`${HASHES}[${index}]`, "it is no sha256", "64 hexadecimal digits"));
    return { at: `${field}[${index}]`, name: `${folder}/${name}`, sources, sha256: sha256?.toLowerCase() ?? null };
  });
  return { references, problems };
}

type Texts = readonly string[] | null;

/** null when the row has none. */
function list(value: unknown, field: string, problems: RowProblem[]): Texts {
  if (value == null) return null;
  if (Array.isArray(value) && value.every((one): one is string => typeof one === "string" && one !== "" && !one.includes("\0")))
    return value;
  problems.push(problem(field, "it is no list of texts", "a list of texts"));
  return null;
}

function sourceOf(text: string): ReferenceSource | null {
  if (isAbsolute(text)) return { kind: "file", path: text };
  if (!URL.canParse(text)) return null;
  const url = new URL(text);
  if (url.protocol === "https:" || url.protocol === "http:") return { kind: "url", url };
  try {
    return url.protocol === "file:" ? { kind: "file", path: fileURLToPath(url) } : null;
  } catch {
    return null; // e.g. with a host
  }
}

/** The last part of a URL's path, or of a path, as people read it. */
function lastOf(text: string): string {
  const last = (URL.canParse(text) ? new URL(text).pathname : text).split("/").at(-1) ?? "";
  try {
    return decodeURIComponent(last);
  } catch {
    return last;
  }
}

function problem(path: string, message: string, accepted: string): RowProblem {
  return { code: "reference_field", path, message, accepted };
}
