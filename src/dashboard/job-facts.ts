// SPDX-License-Identifier: Apache-2.0
import type { StateReply } from "../api/messages.ts";
import { statesNow } from "../api/state-now.ts";
import type { ArtifactStore } from "../artifacts/types.ts";
import { activationJobId, type TaskId } from "../contract/identity.ts";
import type { ActivationResult } from "../contract/result.ts";
import { findJobs } from "../queue/find-activation.ts";
import type { ActivationJobData } from "../queue/jobs.ts";
import { ACTIVATIONS, FINAL, finalJobId, keys, STEPS } from "../queue/names.ts";
import { inPipeline } from "../queue/pipeline.ts";
import type { Queues } from "../queue/queues.ts";
import { asRolloutResult } from "../resources/documents.ts";
import { findKnown } from "../resources/find-rollouts.ts";
import { activationOfStep } from "../resources/record.ts";
import { shortFields } from "./short-fields.ts";

/** What is known of one job of a queue, all of it short. */
export interface JobFacts {
  /** Its id in its queue. */
  id: string;
  task_id: TaskId | null;
  state: StateReply;
  /** failure_kind/cause_code of one that failed. */
  cause: string | null;
  /** Of BullMQ's job, as Redis keeps them: numbers as texts. failedReason: a consumer's own words, or a lost worker. */
  fields: Partial<Record<(typeof SMALL)[number], string>>;
}

/** Of one that is looked at alone. */
export interface JobDetails {
  /** null: too large, or there is none. */
  activation: ActivationJobData["activation"] | null;
  /** In bytes. */
  data_bytes: number;
  result: ActivationResult | null;
}

const SMALL = ["timestamp", "processedOn", "finishedOn", "delay", "priority", "pb", "failedReason"] as const;
const MAX_FIELD = 4_096;
/** An activation with longer data is not read for its page: files may be part of it. */
const MAX_DATA = 262_144;

/** Of jobs of one queue, by their ids; those that are gone are left out. Meant for up to some hundred. */
export async function jobFacts(queues: Queues, queue: string, ids: readonly string[]): Promise<JobFacts[]> {
  if (ids.length === 0) return [];
  const [found, fields] = await Promise.all([
    queue === STEPS ? findKnown(queues, ids.map(activationOfStep)) : findJobs(queues, ids.map(activationJobOf(queue))),
    shortFields(
      queues.redis,
      ids.map((id) => keys.job(queue, id)),
      SMALL,
      MAX_FIELD,
    ),
  ]);
  const [states, causes] = await Promise.all([
    statesNow(queues, found),
    inPipeline(queues.redis, (pipeline) => {
      for (const { activation_id, run_id } of found) pipeline.hget(keys.causes(run_id ?? ""), activation_id);
    }),
  ]);
  return ids.flatMap((id, index) => {
    const own: JobFacts["fields"] = Object.fromEntries(Object.entries(fields[index]!).filter(([, value]) => typeof value === "string"));
    if (own.timestamp === undefined) return [];
    const state = states[index]!;
    const cause = state.status === "failed" ? (causes[index] as string | null) : null;
    return [{ id, task_id: found[index]!.task_id, state, cause, fields: own }];
  });
}

/** More of one of them. */
export async function jobDetails(
  { queues, store }: { queues: Queues; store: ArtifactStore },
  queue: string,
  { id, state }: JobFacts,
): Promise<JobDetails> {
  const jobId = queue === STEPS ? activationJobId(state.activation_id, state.generation) : activationJobOf(queue)(id);
  const hash = keys.job(ACTIVATIONS, jobId);
  const [[read], result] = await Promise.all([
    shortFields(queues.redis, [hash], ["data"], MAX_DATA),
    state.state === "ended" ? store.readCommit(state.activation_id) : null,
  ]);
  const data = read!.data;
  const ended = result?.generation === state.generation ? result : null;
  return {
    activation: typeof data === "string" ? (JSON.parse(data) as ActivationJobData).activation : null,
    data_bytes: typeof data === "string" ? Buffer.byteLength(data) : (data ?? 0),
    result: ended === null || state.rollout === undefined ? ended : ((await asRolloutResult(store, ended)) ?? ended),
  };
}

/** In each of our queues a job's id tells whose activation it is. */
function activationJobOf(queue: string): (id: string) => string {
  const prefix = finalJobId("");
  return (id) => (queue === FINAL && id.startsWith(prefix) ? id.slice(prefix.length) : id);
}
