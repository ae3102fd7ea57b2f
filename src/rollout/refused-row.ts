// SPDX-License-Identifier: Apache-2.0
import { deriveActivationId, safeName } from "../contract/identity.ts";
import { MAX_REASON_CHARACTERS } from "../contract/failure.ts";
import type { RefusedRow } from "../contract/refused.ts";
import type { BadRow } from "./task-row.ts";

/** How the results of a row that cannot be run are called. */
export interface RefusedName {
  activation_id: string;
  rollout_id: string;
  task_id: string;
}

/**
 * Names for a row that cannot be run, one per repeat. A row without an id of its own, or with another row's, is called by
 * its line: every row of the file then has a result that can be told from the others. Pure.
 */
export function refusedNames(row: BadRow, { runId, repeats }: { runId: string; repeats: number }): RefusedName[] {
  const duplicate = row.problems.some(({ code }) => code === "duplicate_id");
  const name = row.taskId === null || row.taskId === "" || duplicate ? `line-${row.line}` : row.taskId;
  return Array.from({ length: repeats }, (_, repeat) => {
    const suffix = repeats === 1 ? "" : `-r${repeat}`;
    return { activation_id: `${deriveActivationId(runId, name)}${suffix}`, rollout_id: `${safeName(name)}${suffix}`, task_id: name };
  });
}

/** A row that cannot be run, once for each repeat. Pure. */
export function refusedRows(row: BadRow, options: { runId: string; taskset: string; repeats: number }): RefusedRow[] {
  const reason = row.problems
    .map(({ path, message, accepted }) => `${path === "" ? "" : `${path}: `}${message}; accepted: ${accepted}`)
    .join("\n");
  return refusedNames(row, options).map(({ activation_id, rollout_id, task_id }) => ({
    activation_id,
    rollout_id,
    task_id: { taskset: options.taskset, task_id },
    cause_code: row.problems[0]?.code ?? "invalid_field",
    failure_reason: `line ${row.line}: ${reason}`.slice(0, MAX_REASON_CHARACTERS),
  }));
}
