// SPDX-License-Identifier: Apache-2.0
import type { CancelMark } from "../activation/ports.ts";
import { activationJobId } from "../contract/identity.ts";
import { chargedSoFar } from "./attempts.ts";
import { promoteParked } from "./gate.ts";
import type { FinalJobData } from "./jobs.ts";
import { FINAL, finalJobId, keys } from "./names.ts";
import type { Queues } from "./queues.ts";

export interface CancelAnswer {
  activation_id: string;
  /** Where it was found. starting: claimed, Codex not begun. ended: its result stands. unknown: never queued, or long gone. */
  state: "waiting" | "parked" | "delayed" | "starting" | "running" | "ending" | "ended" | "unknown";
  /** cancelled: its job is out of the queue, `final` records the end. cancelling: its worker was told. nothing: no effect. */
  outcome: "cancelled" | "cancelling" | "nothing";
}

/**
 * Asks for the end of an activation's latest generation. The mark stays, so it also holds for a claim that begins in this
 * moment; the first mark wins. An activation about to commit may still end otherwise.
 */
export async function cancelActivation(queues: Queues, activationId: string, mark: CancelMark): Promise<CancelAnswer> {
  const { redis } = queues;
  const generation = Number((await redis.hget(keys.ledger(activationId), "generation")) ?? 0);
  const jobId = activationJobId(activationId, generation);
  const answer = (state: CancelAnswer["state"], outcome: CancelAnswer["outcome"]): CancelAnswer => ({
    activation_id: activationId,
    state,
    outcome,
  });

  const [finalData, finalEnded] = await redis.hmget(keys.job(FINAL, finalJobId(jobId)), "data", "finishedOn");
  if (finalData == null) return answer("unknown", "nothing");
  if (finalEnded != null) return answer("ended", "nothing");
  await redis.set(keys.cancel(jobId), JSON.stringify(mark), "PX", queues.settings.keep_ended_ms, "NX");

  const { run_id: runId } = JSON.parse(finalData) as FinalJobData;
  const state = await stateOf(queues, runId, jobId);
  if (state === "ending") return answer(state, "nothing");
  // Never removes one that is active: a lost claim comes back to a worker, which sees the mark.
  if (state !== "running" && (await removed(queues, jobId))) {
    await redis.zrem(keys.parked(runId), jobId);
    await promoteParked(queues, runId);
    return answer(state, "cancelled");
  }
  await redis.publish(keys.cancels, jobId);
  const running = (await chargedSoFar(redis, activationId)).lost; // an attempt is open: here it just runs
  return answer(running ? "running" : "starting", "cancelling");
}

/** The request to cancel a job; null when there is none. */
export async function readCancelMark(queues: Queues, jobId: string): Promise<CancelMark | null> {
  const text = await queues.redis.get(keys.cancel(jobId));
  return text === null ? null : (JSON.parse(text) as CancelMark);
}

async function stateOf(queues: Queues, runId: string, jobId: string): Promise<CancelAnswer["state"]> {
  const state = await queues.activations.getJobState(jobId);
  switch (state) {
    case "delayed":
      return (await queues.redis.zscore(keys.parked(runId), jobId)) === null ? "delayed" : "parked";
    case "active":
      return "running";
    case "completed":
    case "failed":
    case "unknown":
      return "ending"; // over for the worker, or removed; `final` has not recorded it yet
    default:
      return "waiting";
  }
}

/** False when a worker holds it. */
async function removed(queues: Queues, jobId: string): Promise<boolean> {
  return (await queues.activations.getBackend().remove(jobId, false)) === 1;
}
