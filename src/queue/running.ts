// SPDX-License-Identifier: Apache-2.0
import type { StopReason } from "../activation/ports.ts";
import { connectRedis } from "../redis/connect.ts";
import { readCancelMark } from "./cancel.ts";
import { isCommitted } from "./committed.ts";
import { promoteAllParked } from "./gate.ts";
import { renewLeases } from "./leases.ts";
import { wakeForAllModels, type ModelSlot } from "./model-limiter.ts";
import { keys } from "./names.ts";
import type { Queues } from "./queues.ts";
import { dropWorkerLease, renewWorkerLease, type WorkerFacts } from "./worker-lease.ts";

interface RunningJob {
  activationId: string;
  generation: number;
  controller: AbortController;
  slot: Slot;
}

/** Of the run, and of the model server; `model` null = it holds neither. */
export interface Slot {
  runId: string;
  model: ModelSlot | null;
}

/** What one worker is running, what keeps it alive, and what stops it. */
export interface Running {
  readonly stopping: boolean;
  has(jobId: string): boolean;
  /** The returned controller is aborted with a StopReason. */
  add(jobId: string, activation: { runId: string; activationId: string; generation: number }): AbortController;
  /** From now on its slots are renewed. */
  holdSlot(jobId: string, model: ModelSlot): void;
  /** From now on they are not renewed, so that a heartbeat cannot take them again. Answers what they were. */
  releaseSlot(jobId: string): Slot;
  remove(jobId: string): void;
  abort(jobId: string, reason: StopReason): void;
  /** Publishes the worker's facts now, not only with the next heartbeat. */
  tell(): void;
  /** Takes nothing new. */
  refuse(): void;
  /** Aborts everything. */
  stop(reason: StopReason): void;
  jobIds(): string[];
  /** Resolves when nothing runs. */
  idle(): Promise<void>;
  close(): Promise<void>;
}

/**
 * Starts the worker's heartbeat: every `lock_renew_ms` its lease and the slots of its jobs are renewed and cancel marks
 * looked for; what is announced meanwhile comes by subscription. What opens by time alone is looked at then too.
 */
export async function startRunning(queues: Queues, facts: WorkerFacts): Promise<Running> {
  const jobs = new Map<string, RunningJob>();
  let stopping = false;
  let whenIdle: (() => void)[] = [];
  await renewWorkerLease(queues, facts);

  const subscriber = connectRedis(queues.target, { role: "blocking", onError: queues.onError });
  subscriber.on("message", (_channel: string, jobId: string) => {
    if (jobs.has(jobId)) stopIfTold(jobId).catch(queues.onError);
  });
  await subscriber.subscribe(keys.stops);

  /** Somebody cancelled it, or committed its end. */
  async function stopIfTold(jobId: string): Promise<void> {
    const job = jobs.get(jobId);
    if (job === undefined) return;
    const mark = await readCancelMark(queues, jobId);
    const committed = await isCommitted(queues.redis, job.activationId, job.generation);
    if (mark !== null) job.controller.abort({ kind: "cancelled", mark } satisfies StopReason);
    if (committed) job.controller.abort({ kind: "lock_lost" } satisfies StopReason);
  }

  async function beat(): Promise<void> {
    await renewWorkerLease(queues, facts);
    const slots = [...jobs].flatMap(([jobId, { slot }]) => (slot.model === null ? [] : [{ ...slot, server: slot.model.server, jobId }]));
    const lists = ({ runId, server }: (typeof slots)[number]): string[] => [keys.running(runId), keys.modelRunning(server)];
    await renewLeases(
      queues,
      slots.flatMap((slot) => lists(slot).map((list) => ({ list, jobId: slot.jobId }))),
    );
    await Promise.all([...jobs.keys()].map(stopIfTold));
    await promoteAllParked(queues);
    await wakeForAllModels(queues);
  }
  let timer: NodeJS.Timeout | undefined;
  let beating: Promise<void> = Promise.resolve();
  const schedule = (): void => {
    timer = setTimeout(() => {
      beating = beat().catch(queues.onError).finally(schedule);
    }, queues.settings.lock_renew_ms);
  };
  schedule();

  return {
    get stopping() {
      return stopping;
    },
    has: (jobId) => jobs.has(jobId),
    add(jobId, { runId, activationId, generation }) {
      const controller = new AbortController();
      jobs.set(jobId, { activationId, generation, controller, slot: { runId, model: null } });
      return controller;
    },
    holdSlot(jobId, model) {
      jobs.get(jobId)!.slot.model = model;
    },
    releaseSlot(jobId) {
      const job = jobs.get(jobId)!;
      const { slot } = job;
      job.slot = { ...slot, model: null };
      return slot;
    },
    remove(jobId) {
      jobs.delete(jobId);
      if (jobs.size === 0) {
        for (const resolve of whenIdle) resolve();
        whenIdle = [];
      }
    },
    abort(jobId, reason) {
      jobs.get(jobId)?.controller.abort(reason);
    },
    tell() {
      renewWorkerLease(queues, facts).catch(queues.onError);
    },
    refuse() {
      stopping = true;
    },
    stop(reason) {
      for (const { controller } of jobs.values()) controller.abort(reason);
    },
    jobIds: () => [...jobs.keys()],
    idle: () => (jobs.size === 0 ? Promise.resolve() : new Promise((resolve) => whenIdle.push(resolve))),
    async close() {
      subscriber.disconnect();
      const connected = queues.redis.status === "ready"; // else the lease runs out by itself
      if (connected) await beating;
      clearTimeout(timer);
      if (connected) await dropWorkerLease(queues, facts.worker_id).catch(queues.onError);
    },
  };
}
