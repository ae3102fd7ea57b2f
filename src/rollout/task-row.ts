// SPDX-License-Identifier: Apache-2.0
import { nearest } from "../config/nearest.ts";
import type { Settings } from "../config/settings.ts";
import type { SessionActivation } from "../contract/activation.ts";

/** Why a row of the task file cannot be run. Codes: those of refusals, and the ones made here and in local-files.ts. */
export interface RowProblem {
  code: string;
  /** As the row spells it, e.g. "files[0].from"; "" for the whole row. */
  path: string;
  message: string;
  accepted: string;
}

/** A row of the task file that cannot be run, with everything that is wrong with it. */
export interface BadRow {
  ok: false;
  line: number;
  taskId: string | null;
  problems: RowProblem[];
}

export type Row = Record<string, unknown>;

/** What a row gets from the settings where it says nothing itself. */
export type RowDefaults = Pick<Settings, "taskset" | "max_attempts" | "required_tools" | "codex" | "codex_version" | "outputs"> & {
  /** Without what somebody else has a default of. */
  model: Partial<Settings["model"]>;
  sandbox: Partial<Settings["sandbox"]>;
};

const SHORT_FIELDS = ["id", "input", "tool_grants", "files", "outputs", "required_tools", "max_attempts", "metadata", "task_data"] as const;

export const PART_OF_JSON = "it is a part of a JSON text that runs over several lines";

/** One line as a row. Never quotes the line: it may hold a token. Pure. */
export function parseRow(text: string): { row: Row } | { problem: RowProblem } {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { problem: notARow(looksLikeWholeJson(text) ? PART_OF_JSON : "it is not JSON") };
  }
  if (isRow(value)) return { row: value };
  return {
    problem: notARow(`it is JSON, but ${Array.isArray(value) ? "an array" : value === null ? "null" : `a ${typeof value}`}, not an object`),
  };
}

export function notARow(message: string): RowProblem {
  return { code: "not_jsonl", path: "", message, accepted: "one JSON object per line (JSONL)" };
}

/** A lone bracket or the beginning of an object: the file is pretty-printed JSON. */
function looksLikeWholeJson(text: string): boolean {
  return /^\s*[[{\]}]\s*,?\s*$/.test(text) || /^\s*"[^"]*"\s*:/.test(text);
}

/** The id by which people know the row; null when it has none. */
export function rowTaskId(row: Row): string | null {
  if (typeof row["id"] === "string") return row["id"];
  const task = row["task_id"];
  if (typeof task === "string") return task; // of a foreign row
  return isRow(task) && typeof task["task_id"] === "string" ? task["task_id"] : null;
}

/**
 * The row as an activation: the short form `{id, input, ...}` spelt out, defaults filled in. Values are not judged here
 * (admission does), only what the short form itself forbids. Pure.
 */
export function expandRow(whole: Row, defaults: RowDefaults): { raw: Row } | { problems: RowProblem[] } {
  const { task_data: _ofTheServer, ...row } = whole;
  const short = Object.hasOwn(row, "id");
  if (short && Object.hasOwn(row, "task_id")) {
    return { problems: [problem("row_form", "id", "id and task_id are both given", "id (short form) or task_id (a whole activation)")] };
  }
  if (!short) {
    if (!Object.hasOwn(row, "task_id")) {
      return { problems: [problem("row_form", "id", "it is missing", "id (short form) or task_id (a whole activation)")] };
    }
    return { raw: withDefaults(row, defaults) };
  }
  const unknown = Object.keys(row).filter((key) => !SHORT_FIELDS.some((field) => field === key));
  if (unknown.length > 0) return { problems: unknown.map(unknownField) };
  const { id, files, outputs, ...rest } = row;
  return {
    raw: withDefaults(
      {
        ...rest,
        task_id: { taskset: defaults.taskset, task_id: id },
        ...(files === undefined ? {} : { sandbox: { files } }),
        ...(outputs === undefined ? {} : { outputs: Array.isArray(outputs) ? { paths: outputs } : outputs }),
      },
      defaults,
    ),
  };
}

/** The task's fields for its resources server, as a row of ours gives them. Pure. */
export function dataForServer(row: Row): { data: Row } | { problem: RowProblem } {
  const data = row["task_data"] ?? {};
  if (isRow(data)) return { data };
  return { problem: problem("invalid_field", "task_data", "it is no object", "an object: the task's fields, for its resources server") };
}

/** With what a verifier asks for beside them: the request that the session answers, unless they hold it. Pure. */
export function withCreateParams(data: Row, { input, instructions }: Pick<SessionActivation, "input" | "instructions">): Row {
  const given = isRow(data["responses_create_params"]) ? data["responses_create_params"] : {};
  // GDPVal's rows come with an empty input: the prompt is made from other fields.
  if (!isEmptyInput(given["input"])) return data;
  const messages = typeof input === "string" ? [{ role: "user", content: input }] : input;
  return { ...data, responses_create_params: { ...(instructions === undefined ? {} : { instructions }), ...given, input: messages } };
}

/** Absent, or nothing that a model could be asked. Pure. */
export function isEmptyInput(input: unknown): boolean {
  return input == null || input === "" || (Array.isArray(input) && input.length === 0);
}

/** Admission speaks of the whole activation; a person who wrote the short form looks for the short form's names. */
export function shortFormPath(path: string): string {
  return path.replace(/^sandbox\.files/, "files").replace(/^task_id\.task_id/, "id");
}

/** What the row does not say itself, from the settings. Pure. */
export function withDefaults(raw: Row, defaults: RowDefaults): Row {
  const { provider, memory_mb, cpus, pids, disk_mb } = defaults.sandbox;
  const model = isRow(raw["model"]) ? raw["model"] : {};
  const { api_key_env, ...withoutKey } = defaults.model;
  const { unknown_version: _ofTheWorker, ...codex } = defaults.codex;
  return {
    max_attempts: defaults.max_attempts,
    required_tools: defaults.required_tools,
    // Nobody consumes a results queue here: the batch reads each result where it is committed.
    reply_to: null,
    ...raw,
    model: overlay(Object.hasOwn(model, "api_key") ? withoutKey : { ...withoutKey, api_key_env }, raw["model"]),
    codex: overlay({ ...codex, version: defaults.codex_version }, raw["codex"]),
    outputs: overlay(defaults.outputs, raw["outputs"]),
    sandbox: overlay({ provider, limits: present({ memory_mb, cpus, pids, disk_mb }) }, raw["sandbox"]),
  };
}

/** Field by field; something that is no object is left for admission to refuse. */
function overlay(defaults: Row, given: unknown): unknown {
  if (given === undefined) return present(defaults);
  return isRow(given) ? { ...present(defaults), ...given } : given;
}

function present(fields: Row): Row {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

function unknownField(key: string): RowProblem {
  const meant = nearest(key, SHORT_FIELDS);
  const shown = key.slice(0, 80);
  return problem(
    "unknown_field",
    shown,
    `there is no field ${JSON.stringify(shown)} in the short form${meant === null ? "" : `; did you mean ${meant}?`}`,
    `${SHORT_FIELDS.join(", ")}; or a whole activation (with task_id in place of id)`,
  );
}

function problem(code: string, path: string, message: string, accepted: string): RowProblem {
  return { code, path, message, accepted };
}

export function isRow(value: unknown): value is Row {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}
