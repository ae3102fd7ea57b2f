// SPDX-License-Identifier: Apache-2.0
import type { Logger } from "pino";
import type { Failure } from "../contract/failure.ts";
import { failure } from "./end-without-run.ts";
import { dueOf } from "./find-activation.ts";
import { endIfExhausted, giveUp } from "./give-up.ts";
import type { FinalJobData } from "./jobs.ts";
import { ACTIVATIONS, FINAL, finalJobId, keys } from "./names.ts";
import { inPipeline } from "./pipeline.ts";
import type { Queues } from "./queues.ts";
import { inPieces } from "./scan.ts";
import { workersAbsentMs } from "./worker-lease.ts";

// What waits while no worker lives. A worker that claims a job ends it where it must; here is what must end without one.

const MOST_MS = 60_000;
const BATCH = 500;

/** Looks now and then, one process at a time; the first look is at once. Does not keep the process alive. */
export function watchUnserved(queues: Queues, log: Logger): { close: () => void } {
  const { stalled_interval_ms, no_worker_deadline_ms } = queues.settings;
  const everyMs = Math.min(MOST_MS, 4 * stalled_interval_ms, Math.max(250, (no_worker_deadline_ms ?? MOST_MS) / 4));
  let closed = false;
  let timer: NodeJS.Timeout | undefined;
  async function look(): Promise<void> {
    if ((await workersAbsentMs(queues)) === null) return;
    const mine = await queues.redis.set(keys.unservedLook, "1", "PX", Math.round(everyMs * 0.8), "NX");
    const ended = mine === null ? 0 : await endUnserved(queues);
    if (ended > 0) log.warn({ ended }, "no worker lives: ended what will not run any more");
  }
  function again(): void {
    look()
      .catch(queues.onError)
      .finally(() => {
        if (!closed) timer = setTimeout(again, everyMs).unref();
      });
  }
  again();
  return {
    close() {
      closed = true;
      clearTimeout(timer);
    },
  };
}

/**
 * Ends jobs whose lost workers used up their attempts and, where there is a deadline for workers, all that has waited for
 * one so long. Not: jobs of a run that somebody paused, and those whose next attempt is not due. Answers how many.
 */
async function endUnserved(queues: Queues): Promise<number> {
  let ended = 0;
  for await (const jobIds of dueJobs(queues)) {
    const waiting = await factsOf(queues, jobIds);
    const lost = waiting.filter((job) => job.lost);
    const overdue = waiting.filter(
      (job) => !job.lost && !job.paused && job.waited_ms >= (queues.settings.no_worker_deadline_ms ?? Infinity),
    );
    // Looked at again: a worker may have come since.
    const absentMs = overdue.length === 0 ? null : await workersAbsentMs(queues);
    const late = absentMs === null || absentMs < queues.settings.no_worker_deadline_ms! ? [] : overdue;
    const ends = await Promise.all([
      ...lost.map(({ jobId }) => endIfExhausted(queues, jobId)),
      ...late.map(({ jobId }) => giveUp(queues, jobId, noWorker(absentMs!))),
    ]);
    ended += ends.filter((one) => one).length;
  }
  return ended;
}

function noWorker(absentMs: number): Failure {
  const reason = `no worker has lived for ${Math.round(absentMs / 1_000)} s (setting queue.no_worker_deadline_seconds)`;
  return { ...failure("transport_unreachable", "no_worker", reason), stage: "admission", terminal: false, status_code: 503 };
}

interface Waiting {
  jobId: string;
  /** Its last attempt was lost with its worker. */
  lost: boolean;
  /** By the clock of whoever queued it. */
  waited_ms: number;
  paused: boolean;
}

async function factsOf({ redis }: Queues, jobIds: readonly string[]): Promise<Waiting[]> {
  const replies = await inPipeline(redis, (pipeline) => {
    for (const jobId of jobIds) {
      pipeline.hget(keys.job(FINAL, finalJobId(jobId)), "data");
      pipeline.hget(keys.job(ACTIVATIONS, jobId), "timestamp");
    }
  });
  const known = jobIds.flatMap((jobId, index) => {
    const [data, timestamp] = replies.slice(2 * index, 2 * index + 2) as (string | null)[];
    return data == null ? [] : [{ jobId, data: JSON.parse(data) as FinalJobData, waited_ms: Date.now() - Number(timestamp) }];
  });
  const more = await inPipeline(redis, (pipeline) => {
    for (const { data } of known) pipeline.hexists(keys.ledger(data.activation_id), "open").hget(keys.gate(data.run_id), "paused");
  });
  return known.map(({ jobId, waited_ms }, index) => {
    return { jobId, waited_ms, lost: more[2 * index] === 1, paused: more[2 * index + 1] === "1" };
  });
}

/** What a worker would take now, in pieces. What moves meanwhile may be seen twice, or with the next look. */
async function* dueJobs({ redis, activations }: Queues): AsyncGenerator<string[], undefined> {
  const lost = await redis.lrange(activations.toKey("wait"), 0, -1); // lost claims come back here; everything else has a priority
  if (lost.length > 0) yield lost;
  for (const list of ["prioritized", "delayed"]) {
    for await (const pairs of inPieces(redis.zscanStream(activations.toKey(list), { count: BATCH }), 2 * BATCH)) {
      const ids = pairs.filter((_, index) => index % 2 === 0 && (list === "prioritized" || dueOf(pairs[index + 1]!) <= Date.now()));
      if (ids.length > 0) yield ids;
    }
  }
  return undefined;
}
