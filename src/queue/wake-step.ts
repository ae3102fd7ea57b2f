// SPDX-License-Identifier: Apache-2.0
import type { NextStep } from "./jobs.ts";
import type { Queues } from "./queues.ts";

/** Lets one rollout go on. The same job id twice wakes it once; what has nothing to do for it says so. */
export async function wakeStep(queues: Queues, { job_id, activation_id }: NextStep): Promise<void> {
  const keep = { age: Math.ceil(queues.settings.keep_ended_ms / 1_000) };
  await queues.steps.add(
    "step",
    { activation_id },
    { jobId: job_id, attempts: 1, removeOnComplete: keep, removeOnFail: keep, stackTraceLimit: 0 },
  );
}
