// SPDX-License-Identifier: Apache-2.0
import { readFile, stat } from "node:fs/promises";
import { meantBy } from "../config/nearest.ts";
import { RESULT_SCHEMA, type ActivationResult } from "../contract/result.ts";
import { RollcallError } from "../errors.ts";
import { MAX_RESULT_LINE_BYTES } from "./json-lines.ts";
import { decodeLine, readLines } from "./lines.ts";

const MOST_SHOWN = 10;

/** The one result in a file: result.json. Throws RollcallError "result_unreadable". */
export async function readResultFile(path: string): Promise<ActivationResult> {
  const { size } = await requireFile(path);
  const value = size > MAX_RESULT_LINE_BYTES ? null : jsonOf(await readFile(path, "utf8"));
  if (isResult(value)) return value;
  throw new RollcallError("result_unreadable", `${path} holds no result (${RESULT_SCHEMA}): name a result.json, or --out and an id`);
}

/**
 * The last line of results.jsonl for an activation or task id; only reads, so a run may be writing. Throws RollcallError
 * "result_unknown", with the nearest ids, or "result_ambiguous" for a task that was run several times.
 */
export async function findResult(path: string, id: string): Promise<ActivationResult> {
  const found = new Map<string, ActivationResult>();
  const ids = new Set<string>();
  for await (const result of resultsIn(path)) {
    ids.add(result.activation_id).add(result.task_id.task_id);
    if (result.activation_id === id || result.task_id.task_id === id) found.set(result.activation_id, result);
  }
  const exact = found.get(id);
  const [first, ...others] = exact === undefined ? [...found.values()] : [exact];
  if (first === undefined) throw unknownId(path, id, ids);
  if (others.length === 0) return first;
  const names = [...found.keys()].slice(0, MOST_SHOWN).join(", ");
  throw new RollcallError("result_ambiguous", `${found.size} activations have the task id ${JSON.stringify(id)}; name one: ${names}`);
}

function unknownId(path: string, id: string, ids: ReadonlySet<string>): RollcallError {
  if (ids.size === 0) return new RollcallError("result_unknown", `${path} holds no result yet`);
  const meant = meantBy(id, ids);
  const hint = meant.length === 0 ? `it holds e.g. ${[...ids].slice(0, 3).join(", ")}` : `did you mean ${meant.join(", ")}?`;
  return new RollcallError("result_unknown", `${path} holds no result of ${JSON.stringify(id.slice(0, 200))}; ${hint}`);
}

async function requireFile(path: string): Promise<{ size: number }> {
  const found = await stat(path).catch(() => null);
  if (found?.isFile() === true) return found;
  throw new RollcallError("result_unreadable", `there is no file ${path}: name a result.json, or the output directory of a run with --out`);
}

async function* resultsIn(path: string): AsyncGenerator<ActivationResult> {
  await requireFile(path);
  for await (const line of readLines(path, MAX_RESULT_LINE_BYTES)) {
    const value = line.tooLong ? null : jsonOf(decodeLine(line.bytes) ?? "");
    if (isResult(value)) yield value;
  }
}

function isResult(value: unknown): value is ActivationResult {
  return value !== null && typeof value === "object" && "schema" in value && value.schema === RESULT_SCHEMA;
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null; // a torn last line, or one edited by hand
  }
}
