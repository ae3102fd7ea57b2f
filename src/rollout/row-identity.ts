// SPDX-License-Identifier: Apache-2.0
import { createHash } from "node:crypto";
import { canonical, withoutSecretValues } from "../activation/content.ts";
import { parseRow, shortFormPath, type Row } from "./task-row.ts";

/** More leaves than this are told by their top-level fields. */
const MOST_LEAVES = 64;
const DIGEST_CHARACTERS = 12;

/** What tells whether a row is still the same: not how it is written, nor the values of its secrets. */
export interface RowIdentity {
  sha256: string;
  /** A short digest for each field, to say later which of them changed. */
  fields: Record<string, string>;
}

/** Of one line of a task file; one that is no row is what it says. Pure. */
export function rowIdentity(text: string): RowIdentity {
  const parsed = parseRow(text);
  if ("problem" in parsed) return { sha256: sha256(text.trim()), fields: {} };
  const row = withoutSecretValues(spelt(parsed.row));
  const leaves = leavesOf(row, "");
  const named = leaves.length <= MOST_LEAVES ? leaves : Object.entries(row);
  const fields = named.map(([path, value]) => [shortFormPath(path), sha256(canonical(value)).slice(0, DIGEST_CHARACTERS)]);
  return { sha256: sha256(canonical(row)), fields: Object.fromEntries(fields) as Record<string, string> };
}

/** The fields in which two of them differ, by name. Pure. */
export function changedFields(before: RowIdentity["fields"], after: RowIdentity["fields"]): string[] {
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  return [...names].filter((name) => before[name] !== after[name]).sort();
}

/** The short form's files where a whole activation has them: there their URLs are known for what they are. */
function spelt(row: Row): Row {
  const { files, ...rest } = row;
  return files === undefined || Object.hasOwn(row, "sandbox") ? row : { ...rest, sandbox: { files } };
}

function leavesOf(value: unknown, path: string): [path: string, value: unknown][] {
  if (value === null || typeof value !== "object") return [[path, value]];
  const inner = (key: string): string => (Array.isArray(value) ? `${path}[${key}]` : path === "" ? key : `${path}.${key}`);
  const leaves = Object.entries(value).flatMap(([key, one]) => leavesOf(one, inner(key)));
  return leaves.length === 0 ? [[path, value]] : leaves;
}

function sha256(text: string): string {
  return createHash("sha256").update(text, "utf8").digest("hex");
}
