// SPDX-License-Identifier: Apache-2.0
import { openActivation, sealedWith } from "../activation/seal.ts";
import type { SecretKeys } from "../activation/secret-keys.ts";
import type { ArtifactStore } from "../artifacts/types.ts";
import { activationSchema, type SessionActivation } from "../contract/activation.ts";
import type { Status } from "../contract/result.ts";
import { answerTo, type Outcome } from "./answers.ts";
import { enqueueAgain } from "./enqueue-again.ts";
import { findActivations, type ActivationState, type FoundActivation } from "./find-activation.ts";
import type { ActivationJobData } from "./jobs.ts";
import { ACTIVATIONS, keys as names } from "./names.ts";
import type { Queues } from "./queues.ts";
import { inPieces } from "./scan.ts";

const BATCH = 50;

export interface RetryAnswer {
  activation_id: string;
  state: ActivationState;
  outcome: Outcome;
  /** Of one that ended and still cannot be run again from what Redis has. */
  why: "secrets_deleted" | "job_removed" | null;
}

interface RetryParts {
  queues: Queues;
  store: ArtifactStore;
  keys: SecretKeys;
}

/**
 * Queues ended activations again, each as a new generation made of its own job. A job's secrets are deleted when its end is
 * recorded, and the job of one that was cancelled while it waited is gone: of those the producer must enqueue it again.
 */
export async function retryActivations({ queues, store, keys }: RetryParts, activationIds: readonly string[]): Promise<RetryAnswer[]> {
  const answers: RetryAnswer[] = [];
  for (let from = 0; from < activationIds.length; from += BATCH) {
    const found = await findActivations(queues, activationIds.slice(from, from + BATCH));
    const again: SessionActivation[] = [];
    for (const each of found) {
      const { activation_id, state } = each;
      const kept = state === "ended" ? await keptActivation(queues, each.job_id) : null;
      if (kept !== null && typeof kept !== "string") again.push(activationSchema.parse(openActivation(kept.activation, keys)));
      const why = typeof kept === "string" ? kept : null;
      answers.push({ activation_id, state, outcome: why === null ? answerTo("retry", state).outcome : "impossible", why });
    }
    await enqueueAgain(queues, store, again, { keys });
  }
  return answers;
}

/** The same for all of a run that ended with one of these statuses; 50 at once. Yields each piece's answers. */
export async function* retryRun(
  parts: RetryParts,
  runId: string,
  wanted: (status: Status) => boolean,
): AsyncGenerator<RetryAnswer[], undefined> {
  const seen = new Set<string>(); // a scan may come to one again, which then runs
  for await (const fields of inPieces(parts.queues.redis.hscanStream(names.statuses(runId), { count: BATCH }), 2 * BATCH)) {
    const ids = fields.filter((_, index) => index % 2 === 0 && wanted(fields[index + 1] as Status));
    const fresh = ids.filter((id) => !seen.has(id));
    for (const id of fresh) seen.add(id);
    if (fresh.length === 0) continue;
    const answers = await retryActivations(parts, fresh);
    // All of these have ended: what is not known any more, or never was queued, has no job.
    yield answers.map((answer) => (answer.state === "unknown" ? { ...answer, why: "job_removed" as const } : answer));
  }
  return undefined;
}

async function keptActivation({ redis }: Queues, job_id: string): Promise<ActivationJobData | "secrets_deleted" | "job_removed"> {
  const text = await redis.hget(names.job(ACTIVATIONS, job_id), "data");
  if (text === null) return "job_removed";
  const data = JSON.parse(text) as ActivationJobData;
  return whyNotAgain(data) ?? data;
}

/** Of a job that is there: why it cannot be run again once it has ended. Pure. */
export function whyNotAgain({ single_attempt, activation }: ActivationJobData): "secrets_deleted" | null {
  if (single_attempt === true) return "secrets_deleted"; // its producer owns attempts, and has what each of them needs
  return sealedWith(activation).length > 0 ? "secrets_deleted" : null;
}

/** Of one that has ended: why it cannot be run again from what Redis has; null = it can. */
export async function whyNotRetryable(queues: Queues, { job_id }: FoundActivation): Promise<RetryAnswer["why"]> {
  const kept = await keptActivation(queues, job_id);
  return typeof kept === "string" ? kept : null;
}
