// SPDX-License-Identifier: Apache-2.0
import { openActivation } from "../activation/seal.ts";
import type { SecretKeys } from "../activation/secret-keys.ts";
import type { ArtifactStore } from "../artifacts/types.ts";
import type { Failure } from "../contract/failure.ts";
import { activationSchema, type SessionActivation } from "../contract/activation.ts";
import { withDefaultModel, type DefaultModel } from "../contract/default-model.ts";
import type { Status } from "../contract/result.ts";
import { exhaustedAt } from "./attempts.ts";
import { readCancelMark } from "./cancel.ts";
import { enterGate, leaveGate } from "./gate.ts";
import type { ActivationJobData } from "./jobs.ts";
import { enterModel, forgetParkedAtModel, modelServerOf, type ModelSlot } from "./model-limiter.ts";
import { meets, needsOf, type Need } from "./needs.ts";
import type { Queues } from "./queues.ts";
import { spentAttempt } from "./single-attempt.ts";
import type { WorkerFacts } from "./worker-lease.ts";

/** What becomes of a claimed job. */
export type ClaimDecision =
  /** A result was committed before. */
  | { kind: "ended"; status: Status }
  | { kind: "cancelled" }
  /** Lost workers used up its attempts. */
  | { kind: "exhausted"; charged: number }
  /** Its producer owns attempts, and the one it asked for has begun before. */
  | { kind: "spent"; failure: Failure }
  /** This worker cannot run it; another may. */
  | { kind: "unable"; needs: Need[] }
  /** Its run is paused or full, or its model server (`server`) is. */
  | { kind: "parked"; server: string | null }
  /** It holds a slot of its run and of its model server. `nextAttempt`: at least this number. */
  | { kind: "start"; activation: SessionActivation; nextAttempt: number; model: ModelSlot };

/**
 * Decides what a worker does with a job it has claimed, the cheapest and most final reasons first. Every job gets one of
 * the answers. Throws when Redis or the store cannot be asked, or the job is none of ours.
 */
export async function decideClaim(
  queues: Queues,
  store: ArtifactStore,
  keys: SecretKeys,
  facts: WorkerFacts,
  jobId: string,
  data: ActivationJobData,
  defaultModel: DefaultModel = {},
): Promise<ClaimDecision> {
  const { activation: sealed, generation } = data;
  const committed = await store.readCommit(sealed.activation_id);
  if (committed !== null && committed.generation >= generation) return { kind: "ended", status: committed.status };
  if ((await readCancelMark(queues, jobId)) !== null) return { kind: "cancelled" };

  const needs = needsOf(sealed);
  if (!needs.every((need) => meets(facts, need))) return { kind: "unable", needs };

  const activation = withDefaultModel(activationSchema.parse(openActivation(sealed, keys)), defaultModel);
  const charged = await exhaustedAt(queues.redis, activation.activation_id, activation.max_attempts);
  if (charged !== null) return { kind: "exhausted", charged };
  const saved = await store.readAttempts(activation.activation_id);
  const failure = data.single_attempt === true ? await spentAttempt(queues, activation, saved) : null;
  if (failure !== null) return { kind: "spent", failure };
  // A Redis that lost its data knows no numbers, and one that left files without a record was given too.
  const latest = (await store.attemptNumbers(activation.activation_id)).at(-1) ?? -1;
  const nextAttempt = Math.max(activation.episode_id.attempt, latest + 1);
  const server = modelServerOf(activation);
  if (!(await enterGate(queues, activation.run_id, jobId))) {
    await forgetParkedAtModel(queues, server, jobId);
    return { kind: "parked", server: null };
  }
  const model = await enterModel(queues, server, jobId);
  if (model !== null) return { kind: "start", activation, nextAttempt, model };
  await leaveGate(queues, activation.run_id, jobId);
  return { kind: "parked", server };
}
