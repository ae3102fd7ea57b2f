// SPDX-License-Identifier: Apache-2.0

/** How the queue behaves; all durations in ms. Every process of one Redis should have the same. */
export interface QueueSettings {
  /** A claim not renewed this long is lost. */
  lock_duration_ms: number;
  /** How often claims, run slots and worker leases are renewed, and cancel marks looked for. */
  lock_renew_ms: number;
  /** How often lost claims are looked for. */
  stalled_interval_ms: number;
  /** How many claims of one job may be lost. High: the ledger counts lost workers, and ends the activation itself. */
  max_stalled_count: number;
  /** How long ended jobs, ledgers and ends stay. At least as long as anything may be delivered again. */
  keep_ended_ms: number;
  /** How long what could not be pushed to a webhook stays. */
  keep_dead_ms: number;
  /** Largest job, in bytes of JSON. */
  max_job_bytes: number;
  /** Larger results are handed on by reference to the store, in bytes of JSON: many consumers hold many, and pages show them. */
  max_result_bytes: number;
  /** Pause before the next attempt: at random up to `retry_base_ms` doubled per charged attempt, at most `retry_max_ms`. */
  retry_base_ms: number;
  retry_max_ms: number;
  /** Sessions at once at one model server, over all workers; null = as many as it takes. */
  model_max_concurrent: number | null;
  /** After a model server refused sessions: so long without another refusal allows one session more. */
  model_grow_ms: number;
  /** So many activations in a row with the same infrastructure failure open their run's breaker; 0 = never. */
  breaker_after: number;
  /** An open breaker lets one activation try after `breaker_base_ms`, doubled for each that failed, at most `breaker_max_ms`. */
  breaker_base_ms: number;
  breaker_max_ms: number;
  /** Closed gates are looked at again after this long even when nobody opened them: against lost wake-ups. */
  parked_recheck_ms: number;
  /** Pause before a job is offered again that this worker cannot run. */
  unable_recheck_ms: number;
  /** So long no live worker could run it: it fails. */
  no_capable_worker_ms: number;
  /** So long no worker has lived: what waits fails; null = it waits for ever. */
  no_worker_deadline_ms: number | null;
  /** Internal faults of one activation before it fails. */
  max_faults: number;
}

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const DAY = 24 * 60 * MINUTE;

/** design: a claim outlasts two failed renewals; a short loss of Redis must not end long sessions. */
export const DEFAULT_QUEUE_SETTINGS: QueueSettings = {
  lock_duration_ms: MINUTE,
  lock_renew_ms: 20 * SECOND,
  stalled_interval_ms: 15 * SECOND,
  max_stalled_count: 1_000_000,
  keep_ended_ms: 7 * DAY,
  keep_dead_ms: 30 * DAY,
  max_job_bytes: 32 * 1024 * 1024,
  max_result_bytes: 16_000,
  retry_base_ms: 5 * SECOND,
  retry_max_ms: 5 * MINUTE,
  model_max_concurrent: null,
  model_grow_ms: 30 * SECOND,
  breaker_after: 5,
  breaker_base_ms: MINUTE,
  breaker_max_ms: 15 * MINUTE,
  parked_recheck_ms: 10 * MINUTE,
  unable_recheck_ms: 15 * SECOND,
  no_capable_worker_ms: 10 * MINUTE,
  no_worker_deadline_ms: null,
  max_faults: 3,
};
