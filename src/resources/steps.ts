// SPDX-License-Identifier: Apache-2.0
import { setMaxListeners } from "node:events";
import { DelayedError, Worker, type Job } from "bullmq";
import { closeWorker } from "../queue/close-worker.ts";
import type { StepJobData } from "../queue/jobs.ts";
import { PREFIX, STEPS } from "../queue/names.ts";
import { redisOptions, unlessGone } from "../redis/connect.ts";
import { advance } from "./advance.ts";
import { openCaller } from "./call.ts";
import type { StepPorts } from "./step.ts";

/** Steps at once in one process; they mostly wait for the other side, and the sessions there are bounded anyway. */
const CONCURRENCY = 32;
/** Pause after a fault of ours: Redis or the store could not be used. */
const AGAIN_MS = 5_000;

export interface RolloutSteps {
  /** Takes no further step; others do. What is being done goes on. */
  pause(): Promise<void>;
  /** Gives up what it waits for: another process does it again. */
  close(options: { graceMs: number }): Promise<void>;
}

/**
 * Does the steps of rollouts around their activations. Runs in every process of ours, beside the sentinel, so that a producer that
 * dies loses neither seeds nor verifications. The caller closes it before the queues.
 */
export function startRolloutSteps(ports: Omit<StepPorts, "caller">): RolloutSteps {
  const { queues, log } = ports;
  const { settings } = queues;
  const caller = openCaller();
  const stopping = new AbortController();
  setMaxListeners(0, stopping.signal); // one for each call
  const running = new Set<Promise<unknown>>();

  async function process(job: Job<StepJobData>, token: string | undefined): Promise<null> {
    const { activation_id } = job.data;
    let ms: number | null;
    try {
      ms = await advance({ ...ports, caller }, activation_id, { id: job.id!, signal: stopping.signal });
    } catch (error) {
      if (!stopping.signal.aborted) log.error({ err: error, activation_id }, "a step of a rollout could not be done; it is tried again");
      ms = stopping.signal.aborted ? 0 : AGAIN_MS;
    }
    if (ms === null) return null;
    await unlessGone(queues.target, job.moveToDelayed(Date.now() + ms, token)).catch(queues.onError); // else the lost claim is found
    throw new DelayedError();
  }
  function tracked(job: Job<StepJobData>, token: string | undefined): Promise<null> {
    const one = process(job, token).finally(() => running.delete(one));
    running.add(one);
    return one;
  }
  const worker = new Worker<StepJobData, null>(STEPS, tracked, {
    connection: redisOptions(queues.target, "blocking"),
    prefix: PREFIX,
    concurrency: CONCURRENCY,
    lockDuration: settings.lock_duration_ms,
    lockRenewTime: settings.lock_renew_ms,
    stalledInterval: settings.stalled_interval_ms,
    maxStalledCount: settings.max_stalled_count,
    runRetryDelay: 1_000,
  });
  worker.on("error", queues.onError);
  return {
    pause: () => worker.pause(true),
    async close({ graceMs }) {
      stopping.abort(new Error("the process stops"));
      await closeWorker(queues, worker, { idle: () => Promise.allSettled(running), graceMs });
      await caller.close();
    },
  };
}
