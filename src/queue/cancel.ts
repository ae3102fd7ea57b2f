// SPDX-License-Identifier: Apache-2.0
import type { CancelMark } from "../activation/ports.ts";
import { activationIdSchema } from "../contract/identity.ts";
import { cancelRollouts } from "../resources/cancel-rollouts.ts";
import { withRollout } from "../resources/find-rollouts.ts";
import { answerTo, type Outcome } from "./answers.ts";
import { findActivations, findJobs, type ActivationState, type FoundActivation } from "./find-activation.ts";
import { promoteParked } from "./gate.ts";
import { keys } from "./names.ts";
import { inPipeline } from "./pipeline.ts";
import type { Queues } from "./queues.ts";
import { inPieces } from "./scan.ts";

/** How many of a run's activations are cancelled at once: Redis serves others in between. */
const BATCH = 100;

export interface CancelAnswer {
  activation_id: string;
  run_id: string | null;
  /** Where it was found. */
  state: ActivationState;
  /** done: its job is out of the queue, `final` records the end. asked: its worker was told. */
  outcome: Outcome;
}

/**
 * Asks for the end of an activation's latest generation. The mark stays, so it also holds for a claim that begins in this
 * moment; the first mark wins. An activation about to commit may still end otherwise.
 */
export async function cancelActivation(queues: Queues, activationId: string, mark: CancelMark): Promise<CancelAnswer> {
  return (await cancelActivations(queues, [activationId], mark))[0]!;
}

/** The same for many. One answer per id, in order. */
export async function cancelActivations(queues: Queues, activationIds: readonly string[], mark: CancelMark): Promise<CancelAnswer[]> {
  const answers: CancelAnswer[] = [];
  for (let from = 0; from < activationIds.length; from += BATCH) {
    answers.push(...(await cancelFound(queues, await findActivations(queues, activationIds.slice(from, from + BATCH)), mark)));
  }
  const runs = new Set(answers.flatMap(({ run_id, outcome }) => (run_id !== null && outcome === "done" ? [run_id] : [])));
  for (const runId of runs) await promoteParked(queues, runId); // their places are free
  return answers;
}

/**
 * Cancels everything of a run that has not ended, also what is queued meanwhile; answers how many were found in each state.
 * Ids are held in memory, about 100 bytes each.
 */
export async function cancelRun(queues: Queues, runId: string, mark: CancelMark): Promise<Partial<Record<ActivationState, number>>> {
  const counts: Partial<Record<ActivationState, number>> = {};
  // Also rollouts without an activation: they wait for their resources server, or for their next attempt there.
  for await (const ids of inPieces(queues.redis.sscanStream(keys.rollouts(runId), { count: BATCH }), BATCH))
    await cancelRollouts(queues, ids, mark);
  const seen = new Set<string>();
  for (let before = -1; before < seen.size;) {
    before = seen.size;
    for await (const jobIds of inPieces(queues.redis.sscanStream(keys.pending(runId), { count: BATCH }), BATCH)) {
      const fresh = jobIds.filter((jobId) => !seen.has(jobId));
      for (const jobId of fresh) seen.add(jobId);
      for (const { state } of await cancelFound(queues, await findJobs(queues, fresh), mark)) counts[state] = (counts[state] ?? 0) + 1;
    }
  }
  return counts;
}

/** The request to cancel a job; null when there is none. */
export async function readCancelMark(queues: Queues, jobId: string): Promise<CancelMark | null> {
  const text = await queues.redis.get(keys.cancel(jobId));
  return text === null ? null : (JSON.parse(text) as CancelMark);
}

/** For a job whose worker was lost: where no worker lives, nobody else would ever see its mark. */
export async function removeIfCancelled(queues: Queues, jobId: string): Promise<void> {
  if ((await readCancelMark(queues, jobId)) !== null) await removeWaiting(queues, jobId);
}

async function cancelFound(queues: Queues, found: readonly FoundActivation[], mark: CancelMark): Promise<CancelAnswer[]> {
  const open = found.filter(({ state }) => state !== "ended" && state !== "unknown");
  // The marks first: whoever claims one from here on sees it, and a rollout opens no further session.
  const ids = found.map(({ activation_id }) => activation_id).filter((id) => activationIdSchema.safeParse(id).success);
  const rollouts = await cancelRollouts(queues, ids, mark);
  await inPipeline(queues.redis, (pipeline) => {
    for (const { job_id } of open) {
      pipeline.set(keys.cancel(job_id), JSON.stringify(mark), "PX", queues.settings.keep_ended_ms, "NX");
    }
  });
  const removed = new Set<string>();
  await Promise.all(open.map(async ({ job_id }) => (await removeWaiting(queues, job_id)) && removed.add(job_id)));
  await inPipeline(queues.redis, (pipeline) => {
    for (const { job_id, run_id, begun } of open) {
      if (removed.has(job_id)) pipeline.zrem(keys.parked(run_id!), job_id);
      if (begun || !removed.has(job_id)) pipeline.publish(keys.stops, job_id);
    }
  });
  return found.map((each) => {
    const { activation_id, run_id, job_id, state, begun } = each;
    const rollout = rollouts.get(activation_id);
    if (rollout !== undefined && (state === "ended" || state === "unknown")) {
      // It is not in the queue: with its resources server, or on the way between.
      return { activation_id, run_id: rollout.run_id, state: withRollout(each, rollout, undefined, Date.now()).state, outcome: "asked" };
    }
    const now = removed.has(job_id) ? stateRemoved(state, begun) : isQueued(state) ? "starting" : state; // taken since
    return { activation_id, run_id, state: now, outcome: answerTo("cancel", now).outcome };
  });
}

/** A session whose worker lost its claim may still come to an end of its own before it hears of the mark. */
function stateRemoved(state: ActivationState, begun: boolean): ActivationState {
  if (begun) return "running";
  return isClaimed(state) ? "waiting" : state; // handed back since
}

function isQueued(state: ActivationState): boolean {
  return state === "waiting" || state === "parked" || state === "delayed";
}

function isClaimed(state: ActivationState): boolean {
  return state === "starting" || state === "running" || state === "committing";
}

/** Takes a job out of the queue, which releases its parent. False when a worker has it, or it is not there. */
export async function removeWaiting(queues: Queues, jobId: string): Promise<boolean> {
  // Never one that is active: a lost claim comes back to a worker, which sees the mark. Nor one that has ended.
  const state = await queues.activations.getJobState(jobId);
  if (state === "active" || state === "completed" || state === "failed" || state === "unknown") return false;
  return (await queues.activations.getBackend().remove(jobId, false)) === 1;
}
