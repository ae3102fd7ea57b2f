// SPDX-License-Identifier: Apache-2.0
import { knownModelServers, modelState, refusingModels, type ModelState } from "./model-limiter.ts";
import { readEndCounts } from "./end-counts.ts";
import { ACTIVATIONS, FINAL, keys, PREFIX, PRIORITIES } from "./names.ts";
import { inPipeline } from "./pipeline.ts";
import type { Queues } from "./queues.ts";
import { inPieces } from "./scan.ts";
import { unreadResults, type UnreadResults } from "./unread-results.ts";
import { liveWorkers } from "./worker-lease.ts";

/** Most runs, servers and results queues that one reading looks at: it is asked every few seconds. */
const MOST = 1_000;
const CHUNK = 100;
/** BullMQ's score of a job with a priority: this times the priority, plus a counter. */
const PRIORITY_SHARE = 0x1_0000_0000;

/** Numbers of the whole queue, the same whichever process reads them. */
export interface FleetReading {
  /**
   * Activations that have not ended, by where they are. parked: held back by their run; model: by their model server; delayed: until
   * their next attempt, or until a worker can run them. One that is just being woken may be among two.
   */
  activations: Record<"waiting" | "parked" | "model" | "delayed" | "running", number>;
  /** Ends that are about to be recorded. */
  endsPending: number;
  /** Since the activation that waits longest at the front of a line was enqueued; 0 when none waits. */
  oldestWaitingSeconds: number;
  /** Runs that hold work back, by why; at most the first 1,000. */
  runsHeld: Record<"pause" | "breaker" | "limit", number>;
  workers: { taking: number; heldBack: number; /** Sessions at once, of those that take some. */ slots: number };
  results: UnreadResults[];
  /** By origin; only those that are named, wait, or refuse. */
  models: (ModelState & { server: string })[];
  modelsRefusing: number;
  ended: Awaited<ReturnType<typeof readEndCounts>>;
}

/** Some fifteen round trips of bounded size. `servers`: model servers that are looked at in any case. Throws when Redis is away. */
export async function readFleet(queues: Queues, { servers }: { servers: readonly string[] }): Promise<FleetReading> {
  const [depths, runs, models, workers, results, refusing, ended] = await Promise.all([
    readDepths(queues),
    readRuns(queues),
    readModels(queues, servers),
    liveWorkers(queues),
    unreadResults(queues, { most: MOST }),
    refusingModels(queues),
    readEndCounts(queues),
  ]);
  const taking = workers.filter(({ held_back }) => held_back === null);
  const atModels = models.reduce((sum, { parked }) => sum + parked, 0);
  return {
    activations: {
      waiting: depths.waiting,
      running: depths.running,
      parked: runs.parked,
      model: atModels,
      delayed: Math.max(0, depths.delayed - runs.parked - atModels),
    },
    endsPending: depths.endsPending,
    oldestWaitingSeconds: depths.oldestWaitingSeconds,
    runsHeld: runs.held,
    workers: {
      taking: taking.length,
      heldBack: workers.length - taking.length,
      slots: taking.reduce((sum, { concurrency = 0 }) => sum + concurrency, 0),
    },
    results,
    models,
    modelsRefusing: refusing.length,
    ended,
  };
}

async function readDepths(queues: Queues) {
  const { redis } = queues;
  const key = (queue: string, list: string): string => `${PREFIX}:${queue}:${list}`;
  const lines = Object.values(PRIORITIES).map((priority) => priority * PRIORITY_SHARE);
  const replies = await inPipeline(redis, (pipeline) => {
    for (const queue of [ACTIVATIONS, FINAL]) {
      pipeline.llen(key(queue, "wait")).zcard(key(queue, "prioritized")).llen(key(queue, "active")).zcard(key(queue, "delayed"));
    }
    pipeline.time();
    pipeline.lrange(key(ACTIVATIONS, "wait"), -1, -1);
    for (const line of lines) {
      pipeline.zrangebyscore(key(ACTIVATIONS, "prioritized"), line, `(${line + PRIORITY_SHARE}`, "LIMIT", 0, 1);
    }
  });
  const [waiting, prioritized, running, delayed, ...finals] = replies.slice(0, 8) as number[];
  const [seconds, micros] = replies[8] as [string, string];
  const now = Number(seconds) + Number(micros) / 1_000_000;
  const front = (replies.slice(9) as string[][]).flat();
  const times = await inPipeline(redis, (pipeline) => {
    for (const jobId of front) pipeline.hget(keys.job(ACTIVATIONS, jobId), "timestamp");
  });
  const oldest = Math.min(...times.flatMap((time) => (time === null ? [] : [Number(time)])));
  return {
    waiting: waiting! + prioritized!,
    running: running!,
    delayed: delayed!,
    endsPending: finals.reduce((sum, count) => sum + count, 0),
    oldestWaitingSeconds: Number.isFinite(oldest) ? Math.max(0, now - oldest / 1_000) : 0,
  };
}

/** Runs with parked jobs: another one holds nothing back. */
async function readRuns({ redis }: Queues): Promise<{ parked: number; held: FleetReading["runsHeld"] }> {
  const held = { pause: 0, breaker: 0, limit: 0 };
  let parked = 0;
  const seen = new Set<string>();
  for await (const piece of inPieces(redis.sscanStream(keys.parkedRuns, { count: CHUNK }), CHUNK)) {
    const runIds = piece.filter((runId) => !seen.has(runId));
    for (const runId of runIds) seen.add(runId);
    const replies = await inPipeline(redis, (pipeline) => {
      for (const runId of runIds) pipeline.zcard(keys.parked(runId)).hmget(keys.gate(runId), "paused", "breaker_until");
    });
    for (const [index] of runIds.entries()) {
      const [count, [paused, breaker]] = replies.slice(2 * index, 2 * index + 2) as [number, [string | null, string | null]];
      if (count === 0) continue;
      parked += count;
      held[paused === "1" ? "pause" : breaker === null ? "limit" : "breaker"] += 1;
    }
    if (seen.size >= MOST) break;
  }
  return { parked, held };
}

async function readModels(queues: Queues, named: readonly string[]): Promise<FleetReading["models"]> {
  const servers = [...new Set([...named, ...(await knownModelServers(queues, MOST))])];
  return Promise.all(servers.map(async (server) => ({ server, ...(await modelState(queues, server)) })));
}
