// SPDX-License-Identifier: Apache-2.0
import type { Reference } from "../../references/reference.ts";
import { isEmptyInput, isRow, type Row, type RowProblem } from "../task-row.ts";
import { foreignTaskId, gymPath, grantProblems, paramsOf, type ForeignRow } from "./gym.ts";
import { fillTemplate, type PromptTemplate } from "./prompt-template.ts";
import { referencesOf } from "./reference-fields.ts";

/** The tool with which the work is handed in; docs/rows.md. */
const HAND_IN = "finish";
/** Where reference files are in the workdir. */
const FOLDER = "reference_files";

const NONE: { fields: Row; problems: RowProblem[] } = { fields: {}, problems: [] };

/**
 * A GDPVal row: a prompt from the template, its reference files for the workdir, the finish tool required. A row whose
 * `responses_create_params.input` is not empty was made into a prompt before, and keeps it unless a template was `chosen`. Pure.
 */
export function gdpvalRow(
  row: Row,
  index: number,
  options: { taskset: string; template: PromptTemplate; chosen: boolean },
): ForeignRow & { references: Reference[] } {
  const params = Object.hasOwn(row, "responses_create_params") ? paramsOf(row["responses_create_params"]) : NONE;
  const { references, problems } = referencesOf(row, FOLDER);
  const found = [...params.problems, ...grantProblems(row), ...problems];
  const { input, ...others } = params.fields;
  const made = !isEmptyInput(input) && !options.chosen;
  if (!made) found.push(...textProblems(row));
  const text = (field: string, absent: string): string => {
    const value = row[field];
    return typeof value === "string" && value.trim() !== "" ? value : absent;
  };
  const prompt = fillTemplate(options.template, {
    reference_files_str: references.length === 0 ? "(none)" : references.map(({ name }) => `- ${name}`).join("\n"),
    sector: text("sector", "(not stated)"),
    occupation: text("occupation", "(not stated)"),
    prompt: text("prompt", ""),
  });
  const raw = { ...others, task_id: foreignTaskId(row, index, options.taskset), input: made ? input : prompt, required_tools: [HAND_IN] };
  if (typeof row["task_id"] !== "string" && !isRow(row["task_id"]))
    found.push({ code: "missing_field", path: "task_id", message: "it is missing or no text", accepted: "the id of the task" });
  return { raw, problems: found, references };
}

export function gdpvalPath(path: string): string {
  return path === "input" ? "prompt" : gymPath(path);
}

function textProblems(row: Row): RowProblem[] {
  const problems: RowProblem[] = [];
  const { prompt } = row;
  if (typeof prompt !== "string" || prompt.trim() === "") {
    const message = prompt === undefined ? "it is missing" : "it is no text, or blank";
    problems.push({
      code: prompt === undefined ? "missing_field" : "invalid_field",
      path: "prompt",
      message,
      accepted: "the text of the task",
    });
  }
  for (const field of ["sector", "occupation"]) {
    const value = row[field];
    if (value != null && typeof value !== "string")
      problems.push({ code: "invalid_field", path: field, message: "it is no text", accepted: "a text, or nothing" });
  }
  return problems;
}
