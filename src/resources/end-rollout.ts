// SPDX-License-Identifier: Apache-2.0
import type { ActivationResult } from "../contract/result.ts";
import { failure, resultWithoutRun } from "../queue/end-without-run.ts";
import { announceEnd } from "../queue/ended.ts";
import { publishEnd } from "../queue/progress.ts";
import { pushEnd } from "../webhooks/push.ts";
import { asRolloutResult, putRolloutEnd } from "./documents.ts";
import type { RolloutRecord } from "./record.ts";
import { draftOf, episodeOf, sessionIdOf, type Step } from "./step.ts";

/**
 * Writes the end of a rollout into the store, and tells webhooks and those who follow it or its run, which keeps its reward in its row.
 * Doing it again changes nothing.
 */
export async function endRollout(step: Step, record: RolloutRecord): Promise<void> {
  const { store, queues } = step;
  const { activation_id, generation } = record;
  const standing = await store.readCommit(activation_id);
  const result = standing?.generation === generation ? standing : (await store.commit(await unrunResult(step, record))).result;
  await putRolloutEnd(store, activation_id, generation, {
    schema: "rollcall.rollout/1",
    protocol: record.server.protocol,
    resources_session_id: sessionIdOf(record),
    row_sha256: record.row_sha256,
    counted: record.counted,
    verification_failure: record.verification_failure,
    cleanup_error: record.cleanup_error,
    ended_at: new Date().toISOString(),
  });
  await pushEnd(queues, result, null);
  await publishEnd(queues, activation_id, record.attempt, result.status);
  const whole = (await asRolloutResult(store, result)) ?? result;
  await announceEnd(queues, whole, { counted: record.queued });
}

/** Of a rollout whose last attempt had no session. */
async function unrunResult(step: Step, record: RolloutRecord): Promise<ActivationResult> {
  const { activation_id, run_id, task_id, reply_to, metadata } = draftOf(step);
  const { generation, content_digest } = record;
  const why =
    record.failure ?? failure("environment_server_failed", "unknown", "the rollout ended before its session, for an unknown reason");
  const names = { activation_id, run_id, task_id, reply_to, metadata, agent_session_id: null, episode_id: episodeOf(record) };
  const attempts = await step.store.readAttempts(activation_id);
  return resultWithoutRun({ ...names, generation, content_digest, enqueued_at: "" }, { attempts, artifacts: [] }, why, new Date());
}
