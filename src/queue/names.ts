// SPDX-License-Identifier: Apache-2.0
import type { SessionActivation } from "../contract/activation.ts";

/** In braces, so that all keys share one slot of a Redis cluster and scripts may touch any of them. */
export const PREFIX = "{rollcall}";

/** Where activations wait to be run. */
export const ACTIVATIONS = "activations";
/** Where their ends are taken down and handed on; served by every process of ours. */
export const FINAL = "final";

/** Where the ends wait that one webhook is to be told. */
export function webhookQueue(name: string): string {
  return `webhook-${name}`;
}
/** What is done for rollouts around their activations (src/resources); served by every process of ours. Nothing from outside names it. */
export const STEPS = "steps";

/** BullMQ's order is smaller first, and 0 would go before all of them. */
export const PRIORITIES: Record<SessionActivation["priority"], number> = { high: 10, normal: 20, low: 30 };

/** Id of the job in {@link FINAL} whose one child is the activation's job. */
export function finalJobId(jobId: string): string {
  return `f-${jobId}`;
}

/** BullMQ's lock of a claimed activation; its value is the claim's token. */
export function lockKey(jobId: string): string {
  return `${PREFIX}:${ACTIVATIONS}:${jobId}:lock`;
}

/** Our own keys, beside BullMQ's. Run ids and job ids hold no colon, so no two meet. */
export const keys = {
  /** BullMQ's hash of one job. */
  job: (queue: string, jobId: string): string => `${PREFIX}:${queue}:${jobId}`,
  /** Hash: paused, limit, not_after, max_* and used_* (budget.ts), breaker_*, streak*. */
  gate: (runId: string): string => `${PREFIX}:gate:${runId}`,
  /** Sorted set of running jobs by the end of their lease (Redis time, ms). */
  running: (runId: string): string => `${PREFIX}:running:${runId}`,
  /** Sorted set of parked jobs, the longest parked first. */
  parked: (runId: string): string => `${PREFIX}:parked:${runId}`,
  /** Set of jobs not ended yet. */
  pending: (runId: string): string => `${PREFIX}:pending:${runId}`,
  /** Hash of ended activations and how they ended. */
  statuses: (runId: string): string => `${PREFIX}:statuses:${runId}`,
  /** Hash of ended activations that failed, and of what: failure_kind/cause_code. */
  causes: (runId: string): string => `${PREFIX}:causes:${runId}`,
  /** Hash of ended activations: JSON of a row of each (run-rows.ts). */
  rows: (runId: string): string => `${PREFIX}:rows:${runId}`,
  /** Set of activations whose failures in a row were alike. */
  streak: (runId: string): string => `${PREFIX}:streak:${runId}`,
  /** Set of jobs not ended yet that had an attempt. */
  touched: (runId: string): string => `${PREFIX}:touched:${runId}`,
  /** List of JSON: when the run's breaker opened, and why. */
  openings: (runId: string): string => `${PREFIX}:openings:${runId}`,
  /** Sorted set of runs by when something of them was queued last (ms, by the clock of who did). */
  runs: `${PREFIX}:runs`,
  /** Set of runs that have parked jobs. */
  parkedRuns: `${PREFIX}:parked-runs`,
  /** Set of model servers that have parked jobs, by origin. */
  parkedServers: `${PREFIX}:parked-servers`,
  /** Set of model servers that refused sessions and have served none since, by origin. */
  refusingServers: `${PREFIX}:refusing-servers`,
  /** Hash of one model server, by origin: limit, since, held_until, epoch, strikes, refusing. */
  model: (server: string): string => `${PREFIX}:model:${server}`,
  /** Sorted set of jobs that may talk to it, by the end of their lease (Redis time, ms). */
  modelRunning: (server: string): string => `${PREFIX}:model-running:${server}`,
  /** Sorted set of jobs that wait for it, the longest parked first. */
  modelParked: (server: string): string => `${PREFIX}:model-parked:${server}`,
  /** Stream of ends. */
  ended: (runId: string): string => `${PREFIX}:ended:${runId}`,
  /** Hash: next, open, claim, charged, faults, generation, begun:<attempt>, left:<attempt>. */
  ledger: (activationId: string): string => `${PREFIX}:ledger:${activationId}`,
  /** JSON of a cancel mark. */
  cancel: (jobId: string): string => `${PREFIX}:cancel:${jobId}`,
  /** Since when (ms) no worker could run it. */
  unable: (jobId: string): string => `${PREFIX}:unable:${jobId}`,
  /** JSON of a failure: why a job was taken out of the queue without a worker. */
  givenUp: (jobId: string): string => `${PREFIX}:given-up:${jobId}`,
  /** Since when (ms) no worker has lived; only there while somebody looks. */
  noWorker: `${PREFIX}:no-worker`,
  /** One process at a time looks at what waits for workers. */
  unservedLook: `${PREFIX}:unserved-look`,
  /** Stream of live progress. */
  progress: (activationId: string): string => `${PREFIX}:progress:${activationId}`,
  /** JSON of one worker's lease. */
  worker: (workerId: string): string => `${PREFIX}:worker:${workerId}`,
  /** Sorted set of workers by the end of their lease (Redis time, ms). */
  workers: `${PREFIX}:workers`,
  /** Set of the results queues that something was delivered to. */
  resultQueues: `${PREFIX}:result-queues`,
  /** Hash: how many activations ended, by how they did (end-counts.ts). */
  endCounts: `${PREFIX}:end-counts`,
  /** Hash of webhooks, as JSON, by name. */
  webhooks: `${PREFIX}:webhooks`,
  /** Hash of one rollout with a resources server, by its activation: revision, record (JSON), draft (JSON, sealed). */
  rollout: (activationId: string): string => `${PREFIX}:rollout:${activationId}`,
  /** Set of the run's rollouts that have not ended. */
  rollouts: (runId: string): string => `${PREFIX}:rollouts:${runId}`,
  /** Hash: how many of them are in each phase. */
  phases: (runId: string): string => `${PREFIX}:phases:${runId}`,
  /** Sorted set of rollouts that have a session at one resources server, by since when (Redis time, ms). */
  openSessions: (server: string): string => `${PREFIX}:open-sessions:${server}`,
  /** Sorted set of jobs of `steps` that wait for a place there, the longest waiting first. */
  waitingSteps: (server: string): string => `${PREFIX}:waiting-steps:${server}`,
  /** Channel of job ids whose sessions are to stop: cancelled, or ended by somebody else. */
  stops: `${PREFIX}:stops`,
} as const;
