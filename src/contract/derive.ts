// SPDX-License-Identifier: Apache-2.0
import { deriveActivationId, safeName } from "./identity.ts";

/**
 * Fills in the ids a producer may leave out: run_id from the batch, episode_id and activation_id from the task's id.
 * What is there stays as it is, valid or not: admission judges it. Pure.
 */
export function withDerivedIds(raw: Record<string, unknown>, runId: string): Record<string, unknown> {
  const task = raw["task_id"];
  const taskId = isRecord(task) && typeof task["task_id"] === "string" ? task["task_id"] : null;
  const run = typeof raw["run_id"] === "string" ? raw["run_id"] : runId;
  return {
    ...raw,
    run_id: raw["run_id"] ?? runId,
    ...(taskId === null
      ? {}
      : {
          episode_id: raw["episode_id"] ?? { rollout_id: safeName(taskId) },
          activation_id: raw["activation_id"] ?? deriveActivationId(run, taskId),
        }),
  };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}
