// SPDX-License-Identifier: Apache-2.0
import { deriveActivationId, safeName } from "../contract/identity.ts";
import { MAX_REASON_CHARACTERS } from "../contract/failure.ts";
import { RESULT_SCHEMA, type ActivationResult } from "../contract/result.ts";
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

/** The results of a row that cannot be run. Pure. */
export function refusedResults(row: BadRow, options: { runId: string; taskset: string; repeats: number; now: Date }): ActivationResult[] {
  const first = row.problems[0];
  const reason = row.problems
    .map(({ path, message, accepted }) => `${path === "" ? "" : `${path}: `}${message}; accepted: ${accepted}`)
    .join("\n");
  return refusedNames(row, options).map(({ activation_id, rollout_id, task_id }) => {
    return {
      schema: RESULT_SCHEMA,
      activation_id,
      run_id: options.runId,
      generation: 0,
      agent_session_id: null,
      episode_id: { rollout_id, attempt: 0 },
      capture_key: rollout_id,
      task_id: { taskset: options.taskset, task_id },
      status: "refused",
      response: null,
      failure: {
        failure_kind: "agent_request_failed",
        cause_code: first?.code ?? "invalid_field",
        server_names: [],
        stage: "admission",
        failure_reason: `line ${row.line}: ${reason}`.slice(0, MAX_REASON_CHARACTERS),
        terminal: true,
        status_code: 422,
      },
      incomplete_cause: null,
      cause_class: "grant",
      evidence: null,
      observations: { source: "codex", records: [], gaps: [{ code: "harness_not_run", detail: "the row was refused" }] },
      attempts: [],
      artifacts: [],
      usage: null,
      timing: null,
      worker: null,
      ended_at: options.now.toISOString(),
      metadata: {},
    };
  });
}
