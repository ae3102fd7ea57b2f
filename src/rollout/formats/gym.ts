// SPDX-License-Identifier: Apache-2.0
import { bodySchema, UNSUPPORTED_METADATA } from "../../gym/activation-body.ts";
import { isRow, type Row, type RowProblem } from "../task-row.ts";

/** A foreign row as an activation without defaults, and what admission cannot find wrong with it. */
export interface ForeignRow {
  raw: Row;
  problems: RowProblem[];
}

const PARAMS = "responses_create_params";
/** They hold tokens, and foreign rows are copied into the results whole. */
const GRANT_FIELDS = ["tool_grants", "tool_accesses"] as const;

/**
 * A Gym row: `responses_create_params` becomes the input, instructions, model, reasoning effort and metadata; all other fields
 * stay in the row. `index` from 0 names a row without an id, as upstream does. Pure.
 */
export function gymRow(row: Row, index: number, taskset: string): ForeignRow {
  const { fields, problems } = paramsOf(row[PARAMS]);
  return { raw: { task_id: foreignTaskId(row, index, taskset), ...fields }, problems: [...problems, ...grantProblems(row)] };
}

/** The task of a foreign row: `task_id` (a name, or {taskset, task_id}), else `id`, else its index among the rows. Pure. */
export function foreignTaskId(row: Row, index: number, taskset: string): unknown {
  const { task_id, id } = row;
  if (isRow(task_id)) return task_id;
  const named = task_id ?? id;
  return { taskset, task_id: typeof named === "number" ? String(named) : (named ?? String(index)) };
}

export function grantProblems(row: Row): RowProblem[] {
  return GRANT_FIELDS.filter((field) => Object.hasOwn(row, field)).map((field) => ({
    code: "grants_in_foreign_row",
    path: field,
    message: "grants hold tokens, and the fields of such a row are copied into the results",
    accepted: "[[tool_grants]] in rollcall.toml, or a row in Rollcall's own form",
  }));
}

/** What of the parameters of a model call goes into an activation; everything that a Codex session cannot honour is a problem. Pure. */
export function paramsOf(params: unknown): ForeignRow & { fields: Row } {
  const problem = (path: string, message: string, accepted: string): RowProblem => {
    return { code: "gym_param", path: path === "" ? PARAMS : `${PARAMS}.${path}`, message, accepted };
  };
  if (!isRow(params)) {
    const message = params === undefined ? "it is missing" : "it is not an object";
    return { raw: {}, fields: {}, problems: [problem("", message, "an object with an input")] };
  }
  const { reasoning, ...body } = params;
  const parsed = bodySchema.safeParse(body);
  const problems = (parsed.success ? [] : parsed.error.issues).flatMap((issue) =>
    issue.code === "unrecognized_keys"
      ? issue.keys.map((key) => problem(key.slice(0, 80), "a Codex session does not know it", "leave it out"))
      : [problem(issue.path.map(String).join("."), issue.message, "what a Codex session supports (docs/rows.md)")],
  );
  const { input, instructions, model, metadata } = body;
  const effort = isRow(reasoning) ? reasoning["effort"] : undefined;
  const others = isRow(reasoning) ? Object.keys(reasoning).filter((key) => key !== "effort" && reasoning[key] != null) : [];
  if (reasoning != null && !isRow(reasoning)) problems.push(problem("reasoning", "it is not an object", "{effort}, or nothing"));
  for (const key of others) problems.push(problem(`reasoning.${key.slice(0, 80)}`, "a Codex session does not support it", "only effort"));
  for (const key of UNSUPPORTED_METADATA) {
    if (isRow(metadata) && Object.hasOwn(metadata, key))
      problems.push(problem(`metadata.${key}`, "a Codex session does not support it", "leave it out"));
  }
  const fields = {
    ...given("input", input),
    ...given("instructions", instructions),
    ...(model == null ? {} : { model: { name: model } }),
    ...(effort == null ? {} : { codex: { reasoning_effort: effort } }),
    // What is wrong with it was said above.
    ...(parsed.success ? given("metadata", metadata) : {}),
  };
  return { raw: {}, fields, problems };
}

/** Admission speaks of the activation; whoever wrote the row looks for the row's names. Pure. */
export function gymPath(path: string): string {
  return path
    .replace(/^(input|instructions|metadata)(?=$|[.[])/, `${PARAMS}.$1`)
    .replace(/^model\.name$/, `${PARAMS}.model`)
    .replace(/^codex\.reasoning_effort$/, `${PARAMS}.reasoning.effort`)
    .replace(/^task_id\.task_id$/, "task_id");
}

function given(name: string, value: unknown): Row {
  return value == null ? {} : { [name]: value };
}
