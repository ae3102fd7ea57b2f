// SPDX-License-Identifier: Apache-2.0
import { z } from "zod";
import { failureSchema } from "./failure.ts";
import { activationIdSchema, rolloutIdSchema, taskIdSchema } from "./identity.ts";
import { RESULT_SCHEMA, type ActivationResult } from "./result.ts";

/** A row that could not be queued, as its producer tells of it. */
export const refusedRowSchema = z.strictObject({
  activation_id: activationIdSchema,
  rollout_id: rolloutIdSchema,
  task_id: taskIdSchema,
  ...failureSchema.pick({ cause_code: true, failure_reason: true }).shape,
});
export type RefusedRow = z.infer<typeof refusedRowSchema>;

/** Its end. Pure. */
export function refusedResult(runId: string, row: RefusedRow, now: Date): ActivationResult {
  const { activation_id, rollout_id, task_id, cause_code, failure_reason } = row;
  return {
    schema: RESULT_SCHEMA,
    activation_id,
    run_id: runId,
    generation: 0,
    agent_session_id: null,
    episode_id: { rollout_id, attempt: 0 },
    capture_key: rollout_id,
    task_id,
    status: "refused",
    response: null,
    failure: {
      failure_kind: "agent_request_failed",
      cause_code,
      server_names: [],
      stage: "admission",
      failure_reason,
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
    ended_at: now.toISOString(),
    metadata: {},
  };
}
