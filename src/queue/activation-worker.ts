// SPDX-License-Identifier: Apache-2.0
import { setTimeout as delay } from "node:timers/promises";
import { DelayedError, WaitingError, Worker, type Job } from "bullmq";
import type { Logger } from "pino";
import type { Claim, RunEnd, StopReason } from "../activation/ports.ts";
import type { SecretKeys } from "../activation/secret-keys.ts";
import type { ArtifactStore } from "../artifacts/types.ts";
import type { DefaultModel } from "../contract/default-model.ts";
import type { Status } from "../contract/result.ts";
import { messageOf } from "../errors.ts";
import { redisOptions, unlessGone } from "../redis/connect.ts";
import { decideClaim } from "./claim.ts";
import { closeWorker } from "./close-worker.ts";
import { afterBackOff, afterClaim, afterFault, afterRun, type Disposal } from "./disposal.ts";
import { startFence } from "./fence.ts";
import { leaveGate, promoteParked } from "./gate.ts";
import type { ActivationJobData, ChildEnd } from "./jobs.ts";
import { claimLedger, type ClaimLedger } from "./ledger.ts";
import { leaveModel, wakeForModel } from "./model-limiter.ts";
import { ACTIVATIONS, PREFIX } from "./names.ts";
import type { Queues } from "./queues.ts";
import { withoutAnother } from "./single-attempt.ts";
import { startRunning, type Running, type Slot } from "./running.ts";
import { requireSameStore, type WorkerFacts } from "./worker-lease.ts";

/** Redis had given it up when it was to be renewed, or cannot be reached any more. */
export type LockLoss = "renewal_failed" | "cut_off";

export interface ActivationWorkerOptions {
  queues: Queues;
  keys: SecretKeys;
  /** Activations at once. */
  concurrency: number;
  store: ArtifactStore;
  /** Of activations that name no model server. */
  defaultModel?: DefaultModel;
  /** Hears of each claim that is lost while its session runs. */
  onLockLost?: (how: LockLoss) => void;
  /** The straight line. Must end soon after its claim's signal is aborted. */
  run: (claim: Claim) => Promise<RunEnd>;
  facts: WorkerFacts;
  log: Logger;
}

export interface ActivationWorker {
  /** Sessions that it has now. */
  running(): number;
  /** Takes nothing new until it is told null, and tells others why. What runs goes on. */
  holdBack(reason: string | null): void;
  /**
   * Takes nothing new, aborts what runs with "shutdown" and gives it back uncharged. Waits at most `graceMs` for that;
   * what has not ended by then is lost with this process, and taken over by others. With `drain`, what runs may go on
   * to its end for a while before. May be called again meanwhile, with less patience.
   */
  close(options: { graceMs: number; drain?: Drain }): Promise<void>;
}

/** How a worker that stops lets its activations end. */
interface Drain {
  /** How long they may go on. */
  ms: number;
  /** What becomes of those that still run then: given back uncharged, or ended as cancelled. */
  afterwards: "hand_back" | "cancel";
}

/** A job that is still running here must have ended before the same one is taken again. */
const AGAIN_MS = 1_000;

const GRADABLE: ReadonlySet<Status> = new Set(["completed", "incomplete"]);

type ActivationJob = Job<ActivationJobData, ChildEnd>;

/** Starts to take activations. The caller closes it before the queues. Throws RollcallError "store_mismatch". */
export async function startActivationWorker(options: ActivationWorkerOptions): Promise<ActivationWorker> {
  const { queues, store, log } = options;
  const { settings } = queues;
  await requireSameStore(queues, store.id);
  const facts: WorkerFacts = { ...options.facts, concurrency: options.concurrency };
  const running = await startRunning(queues, facts);
  const lost = new Set<string>();
  const lose = (jobId: string, how: LockLoss): void => {
    if (running.has(jobId) && !lost.has(jobId)) {
      lost.add(jobId);
      options.onLockLost?.(how);
    }
    running.abort(jobId, { kind: "lock_lost" });
  };
  const fence = startFence(queues, (jobId) => {
    log.warn({ job_id: jobId }, "this worker is cut off from Redis: a session is ended here, because another worker may take it now");
    lose(jobId, "cut_off");
  });

  async function process(job: ActivationJob, token: string): Promise<ChildEnd> {
    const jobId = job.id!;
    // BullMQ renews claims by job id: two of one id would end each other's renewal. The older one has lost its claim.
    if (running.has(jobId)) return settle(queues, job, token, { kind: "delay", ms: AGAIN_MS, why: "running_here" }, log);
    if (running.stopping || facts.held_back !== null) return settle(queues, job, token, { kind: "hand_back" }, log);

    // Registered before the cancel mark is read: a mark that is set later is announced, and reaches this controller.
    const { activation, generation } = job.data;
    const { signal } = running.add(jobId, { runId: String(activation["run_id"]), activationId: activation.activation_id, generation });
    fence.renewed([jobId]);
    let disposal: Disposal = { kind: "leave" };
    try {
      disposal = await handle(options, running, job, signal);
      return await settle(queues, job, token, disposal, log);
    } finally {
      await freeSlot(queues, jobId, running.releaseSlot(jobId), disposal).catch(queues.onError);
      fence.forget(jobId);
      lost.delete(jobId);
      running.remove(jobId);
    }
  }

  const worker = new Worker<ActivationJobData, ChildEnd>(ACTIVATIONS, (job, token) => process(job, token!), {
    connection: redisOptions(queues.target, "blocking"),
    prefix: PREFIX,
    name: options.facts.worker_id,
    concurrency: options.concurrency,
    lockDuration: settings.lock_duration_ms,
    lockRenewTime: settings.lock_renew_ms,
    stalledInterval: settings.stalled_interval_ms,
    maxStalledCount: settings.max_stalled_count,
    runRetryDelay: AGAIN_MS,
    ...(queues.tracing.queue === undefined ? {} : { telemetry: queues.tracing.queue }),
  });
  worker.on("error", queues.onError);
  worker.on("locksRenewed", ({ jobIds }) => fence.renewed(jobIds.filter((jobId) => running.has(jobId))));
  worker.on("lockRenewalFailed", (jobIds: string[]) => jobIds.forEach((jobId) => lose(jobId, "renewal_failed")));

  return {
    running: () => running.jobIds().length,
    holdBack(reason) {
      facts.held_back = reason;
      if (running.stopping) return;
      void (reason === null ? worker.resume() : worker.pause(true));
      running.tell();
    },
    async close({ graceMs, drain }) {
      running.refuse();
      if (drain !== undefined) {
        await worker.pause(true); // takes nothing new
        await Promise.race([running.idle(), delay(drain.ms, undefined, { ref: false })]);
      }
      running.stop(drain?.afterwards === "cancel" ? drainedMark(options.facts.worker_id) : { kind: "shutdown" });
      const ended = await closeWorker(queues, worker, { idle: () => running.idle(), graceMs });
      if (!ended) log.warn({ jobs: running.jobIds() }, "gave up waiting for running activations; others will take them over");
      fence.close();
      await running.close();
    },
  };
}

function drainedMark(workerId: string): StopReason {
  return { kind: "cancelled", mark: { by: workerId, at: new Date().toISOString(), reason: "its worker was stopped" } };
}

/** Claims, runs, and says what becomes of the job. Never throws. */
async function handle(
  { queues, store, keys, facts, defaultModel, run, log }: ActivationWorkerOptions,
  running: Running,
  job: ActivationJob,
  signal: AbortSignal,
): Promise<Disposal> {
  const { activation: sealed, generation, enqueued_at } = job.data;
  const names = { activationId: sealed.activation_id, runId: String(sealed["run_id"]), jobId: job.id!, generation };
  let ledger: ClaimLedger | null = null;
  try {
    const decision = await decideClaim(queues, store, keys, facts, job.id!, job.data, defaultModel);
    if (decision.kind !== "start") return await afterClaim(queues, job.id!, decision);
    const { activation, model } = decision;
    running.holdSlot(job.id!, model);
    ledger = claimLedger(queues, names, { token: job.token!, floor: decision.nextAttempt });
    const end = await run({ activation, generation, enqueued_at, signal, ledger });
    const disposal =
      end.kind === "back_off"
        ? await afterBackOff(queues, { jobId: job.id!, model, end, ledger, log })
        : await afterRun(queues.settings, activation, end, ledger);
    return job.data.single_attempt === true ? withoutAnother(disposal, end) : disposal;
  } catch (error) {
    const stop = signal.aborted ? (signal.reason as StopReason) : null;
    log.error({ err: error, activation_id: sealed.activation_id, stopped: stop?.kind }, "an activation could not be handled");
    return afterFault(queues, names, error, ledger, stop);
  }
}

/** Does to the job what was decided. Throws only what tells BullMQ that the job is not finished. */
async function settle({ target }: Queues, job: ActivationJob, token: string, disposal: Disposal, log: Logger): Promise<ChildEnd> {
  if (disposal.kind === "finish") return disposal.end;
  try {
    if (disposal.kind === "hand_back") await unlessGone(target, job.moveToWait(token));
    if (disposal.kind === "delay") await unlessGone(target, job.moveToDelayed(Date.now() + disposal.ms, token));
  } catch (error) {
    // Its claim is lost, or Redis is: it is still active there, and comes back by the check for lost claims.
    log.warn({ job_id: job.id, reason: messageOf(error) }, "a job could not be put back");
  }
  throw disposal.kind === "hand_back" ? new WaitingError() : new DelayedError();
}

/** Lets others have the slots, once the job has left this worker. */
async function freeSlot(queues: Queues, jobId: string, { runId, model }: Slot, disposal: Disposal): Promise<void> {
  if (disposal.kind === "leave") return; // whoever has the job now may hold them
  if (model !== null) {
    const served = disposal.kind === "finish" && disposal.end.kind === "committed" && GRADABLE.has(disposal.end.status);
    await leaveModel(queues, model, jobId, { served });
    await leaveGate(queues, runId, jobId);
  }
  if (disposal.kind !== "delay" || disposal.why !== "parked") return;
  // What it waits for may have opened between the look at it and the parking.
  await promoteParked(queues, runId);
  if (disposal.server !== null) await wakeForModel(queues, disposal.server);
}
