// SPDX-License-Identifier: Apache-2.0
import { DelayedError, Worker, type Job } from "bullmq";
import type { Logger } from "pino";
import { withUnsaved } from "../activation/lost-attempt.ts";
import { withoutSecrets } from "../activation/seal.ts";
import { evidenceLeft } from "../artifacts/evidence.ts";
import type { ArtifactStore } from "../artifacts/types.ts";
import { activationJobId } from "../contract/identity.ts";
import type { ActivationResult, Artifact, Attempt, Status } from "../contract/result.ts";
import { pushEnd } from "../webhooks/push.ts";
import { redisOptions, unlessGone } from "../redis/connect.ts";
import { endLabels } from "../telemetry/end-labels.ts";
import { unsavedAttempts } from "./attempts.ts";
import { readCancelMark, removeIfCancelled } from "./cancel.ts";
import { closeWorker } from "./close-worker.ts";
import { deliver } from "./deliver.ts";
import { keepContent } from "./ended-content.ts";
import { announceEnd, leaveRun } from "./ended.ts";
import { failureOf, resultWithoutRun, type ChildTrace } from "./end-without-run.ts";
import { readGivenUp } from "./give-up.ts";
import type { ChildEnd, FinalJobData } from "./jobs.ts";
import { ACTIVATIONS, FINAL, PREFIX } from "./names.ts";
import { publishEnd } from "./progress.ts";
import type { Queues } from "./queues.ts";
import { whyNotAgain } from "./retry.ts";
import { watchUnserved } from "./unserved.ts";
import { wakeStep } from "./wake-step.ts";
import { requireSameStore } from "./worker-lease.ts";

const CONCURRENCY = 8;
/** Pause before an end that could not be recorded is tried again; as often as it takes. */
const AGAIN_MS = 5_000;

type FinalJob = Job<FinalJobData, { status: Status }>;

export interface Sentinel {
  /** Finishes the ends it is recording, for at most `graceMs`; others record the rest. */
  close(options: { graceMs: number }): Promise<void>;
}

/**
 * Takes down the ends of activations and looks for lost claims. Runs in every process of ours, so that an activation also
 * ends when no worker lives. The caller closes it before the queues. Throws RollcallError "store_mismatch".
 */
export async function startSentinel(options: { queues: Queues; store: ArtifactStore; log: Logger }): Promise<Sentinel> {
  const { queues, store, log } = options;
  const { settings } = queues;
  await requireSameStore(queues, store.id);
  const common = {
    connection: redisOptions(queues.target, "blocking"),
    prefix: PREFIX,
    lockDuration: settings.lock_duration_ms,
    lockRenewTime: settings.lock_renew_ms,
    stalledInterval: settings.stalled_interval_ms,
    maxStalledCount: settings.max_stalled_count,
    runRetryDelay: 1_000,
    ...(queues.tracing.queue === undefined ? {} : { telemetry: queues.tracing.queue }),
  };

  async function record(job: FinalJob, token: string | undefined): Promise<{ status: Status }> {
    try {
      return { status: (await tracedRecord(queues, store, job)).status };
    } catch (error) {
      log.error({ err: error, activation_id: job.data.activation_id }, "an end could not be recorded; it is tried again");
    }
    await unlessGone(queues.target, job.moveToDelayed(Date.now() + AGAIN_MS, token)).catch(queues.onError); // else the lost claim is found
    throw new DelayedError();
  }
  const recording = new Set<Promise<unknown>>();
  function tracked(job: FinalJob, token: string | undefined): Promise<{ status: Status }> {
    const one = record(job, token).finally(() => recording.delete(one));
    recording.add(one);
    return one;
  }
  const final = new Worker<FinalJobData, { status: Status }>(FINAL, tracked, { ...common, concurrency: CONCURRENCY });
  // Never runs anything: without a processor a worker can still look for lost claims.
  const watch = new Worker(ACTIVATIONS, null, { ...common, autorun: false });
  for (const worker of [final, watch]) worker.on("error", queues.onError);
  watch.on("stalled", (jobId: string) => void removeIfCancelled(queues, jobId).catch(queues.onError));
  await watch.startStalledCheckTimer();
  const unserved = watchUnserved(queues, log);

  return {
    async close({ graceMs }) {
      unserved.close();
      const idle = (): Promise<unknown> => Promise.allSettled(recording);
      await Promise.all([closeWorker(queues, final, { idle, graceMs }), watch.close(true)]);
    },
  };
}

/** In the trace of what enqueued it. */
async function tracedRecord(queues: Queues, store: ArtifactStore, job: FinalJob): Promise<ActivationResult> {
  const attributes = { "rollcall.activation_id": job.data.activation_id, "rollcall.run_id": job.data.run_id };
  return queues.tracing.within("record end", { attributes }, async (span) => {
    const result = await recordEnd(queues, store, job);
    const { status, cause_code } = endLabels(result);
    span.set({ "rollcall.status": status, "rollcall.cause_code": cause_code });
    if (status === "failed" || status === "refused") span.fail(cause_code);
    return result;
  });
}

/** Each step may be done again: whoever takes over from a killed process begins at the first. */
async function recordEnd(queues: Queues, store: ArtifactStore, job: FinalJob): Promise<ActivationResult> {
  const { activation_id, generation, reply_to, next_step } = job.data;
  const jobId = activationJobId(activation_id, generation);
  const result = await committedResult(queues, store, job, jobId);
  const child = await queues.activations.getJob(jobId);
  if (reply_to !== null) await queues.tracing.within("deliver", { kind: "producer" }, () => deliver(queues, reply_to, result, store));
  if (next_step !== undefined) {
    await leaveRun(queues, result); // those who watch, or follow the run, are told of its rollout's end in place of this one
    await wakeStep(queues, next_step);
  } else {
    await pushEnd(queues, result, reply_to);
    await publishEnd(queues, activation_id, result.episode_id.attempt, result.status);
    await announceEnd(queues, result, { retryable: child !== undefined && whyNotAgain(child.data) === null });
  }
  if (child === undefined) return result;
  await keepContent(store, child.data);
  // Nobody opens them again; without them the job still tells whether another activation has the same content.
  await child.updateData({ ...child.data, activation: withoutSecrets(child.data.activation) });
  return result;
}

/** The result of this generation: what a run committed, else one made from what its job left behind. */
async function committedResult(queues: Queues, store: ArtifactStore, job: FinalJob, jobId: string): Promise<ActivationResult> {
  const { activation_id, generation } = job.data;
  const standing = await store.readCommit(activation_id);
  if (standing?.generation === generation) return standing;
  const failure = failureOf(await traceOf(queues, job, jobId));
  const made = resultWithoutRun(job.data, await leftOf(queues, store, job.data), failure, new Date());
  return (await store.commit(made)).result;
}

/** All attempts, also those whose worker died before it could save a record, and what is in the store of the last one. */
async function leftOf(
  queues: Queues,
  store: ArtifactStore,
  { activation_id, episode_id }: FinalJobData,
): Promise<{ attempts: Attempt[]; artifacts: Artifact[] }> {
  const saved = await store.readAttempts(activation_id);
  const attempts = withUnsaved(saved, await unsavedAttempts(queues.redis, activation_id), episode_id.rollout_id, new Date());
  const last = attempts.at(-1);
  return { attempts, artifacts: last === undefined ? [] : await evidenceLeft(store, activation_id, last.attempt) };
}

async function traceOf(queues: Queues, job: FinalJob, jobId: string): Promise<ChildTrace> {
  const values = Object.values(await job.getChildrenValues<ChildEnd>());
  const failures = Object.values(await job.getIgnoredChildrenFailures());
  const [mark, givenUp] = await Promise.all([readCancelMark(queues, jobId), readGivenUp(queues, jobId)]);
  return { value: values[0] ?? null, failedReason: failures[0] ?? null, mark, givenUp };
}
