// SPDX-License-Identifier: Apache-2.0
import { randomUUID } from "node:crypto";
import { Job, Queue } from "bullmq";
import { activationIdSchema } from "../contract/identity.ts";
import type { ActivationResult } from "../contract/result.ts";
import { keys, PREFIX } from "./names.ts";
import type { Queues } from "./queues.ts";

/** Between a claim and its lease; a claimer that dies in between holds a result this long. */
const CLAIM_MS = 30_000;
/** How often leases that ran out are looked for, by whoever claims. Two looks bring one back. */
const LOOK_MS = 1_000;
/** Leases may run out as often as they do: what nobody acknowledges stays. */
const NEVER = 1_000_000_000;

export interface ClaimedResult {
  /** The activation's id; from its second generation on with `.g<n>`. */
  result_id: string;
  /** To be given back with the acknowledgement. */
  receipt: string;
  /** 1 = for the first time. */
  delivery: number;
  /** As it was delivered: a large one by reference. */
  result: ActivationResult;
}

interface ResultAck {
  result_id: string;
  receipt: string;
}

/** acked: it will not come again. lost: its lease ran out, and somebody else has it, or had it. unknown: there is no such result. */
type AckOutcome = "acked" | "lost" | "unknown";

/**
 * Results of a queue for consumers that are no BullMQ workers: a claimed one is a job that is active under a lock as long as
 * its lease, all of it in Redis, so that any process may acknowledge it. One that is not comes again.
 */
export interface ResultClaims {
  claim(queue: string, options: { max: number; leaseMs: number }): Promise<ClaimedResult[]>;
  /** One answer each, in order. Doing it twice is doing it once. */
  ack(queue: string, acks: readonly ResultAck[]): Promise<AckOutcome[]>;
  /** Where the queue's news are, and the last of them. */
  news(queue: string): Promise<{ key: string; last: string }>;
}

/** Uses the connection of `queues`; there is nothing to close. */
export function resultClaims({ redis, onError }: Queues): ResultClaims {
  const opened = new Map<string, Queue<ActivationResult>>();

  /** null: nothing was ever delivered there. */
  async function open(name: string): Promise<Queue<ActivationResult> | null> {
    if (!(await redis.sismember(keys.resultQueues, name))) return null;
    const known = opened.get(name);
    if (known !== undefined) return known;
    // Its scripts take these from the options, as a worker's do (bullmq 6.7.0, redis-queue-backend.js).
    const asWorker = { lockDuration: CLAIM_MS, stalledInterval: LOOK_MS, maxStalledCount: NEVER };
    const queue = new Queue<ActivationResult>(name, { connection: redis, prefix: PREFIX, ...asWorker });
    queue.on("error", onError);
    opened.set(name, queue);
    return queue;
  }

  return {
    async claim(name, { max, leaseMs }) {
      const queue = await open(name);
      if (queue === null) return [];
      const backend = queue.getBackend();
      await backend.moveStalledJobsToWait();
      const receipt = randomUUID();
      const claimed: ClaimedResult[] = [];
      while (claimed.length < max) {
        const [job, id] = await backend.moveToActive(receipt, "rollcall");
        if (!job || id === undefined) break;
        await backend.extendLock(id, receipt, leaseMs);
        const { data, attemptsStarted } = Job.fromJSON<ActivationResult>(queue, job as Parameters<typeof Job.fromJSON>[1], id);
        claimed.push({ result_id: id, receipt, delivery: attemptsStarted, result: data });
      }
      return claimed;
    },
    async ack(name, acks) {
      const queue = await open(name);
      if (queue === null) return acks.map(() => "unknown");
      return Promise.all(acks.map((one) => ackOne(queue, one)));
    },
    async news(name) {
      const key = `${PREFIX}:${name}:events`;
      const [last] = await redis.xrevrange(key, "+", "-", "COUNT", 1);
      return { key, last: last?.[0] ?? "0" };
    },
  };
}

async function ackOne(queue: Queue<ActivationResult>, { result_id, receipt }: ResultAck): Promise<AckOutcome> {
  // What is no activation's may be a key of the queue.
  if (!activationIdSchema.safeParse(result_id.replace(/\.g[0-9]+$/, "")).success) return "unknown";
  const job = await Job.fromId<ActivationResult, { receipt: string } | null>(queue, result_id);
  if (job === undefined) return "unknown";
  if (job.finishedOn !== undefined) return job.returnvalue?.receipt === receipt ? "acked" : "lost";
  try {
    await job.moveToCompleted({ receipt }, receipt, false);
    return "acked";
  } catch (error) {
    // Missing lock, another's lock, not active: as BullMQ says it.
    if (error instanceof Error && /lock|is not in the active state|Missing key/i.test(error.message)) return "lost";
    throw error;
  }
}
