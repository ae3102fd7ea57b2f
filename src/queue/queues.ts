// SPDX-License-Identifier: Apache-2.0
import { FlowProducer, Queue } from "bullmq";
import type { Redis } from "ioredis";
import { connectRedis, withoutCommand, type RedisRole, type RedisTarget } from "../redis/connect.ts";
import type { ActivationResult } from "../contract/result.ts";
import type { ActivationJobData, FinalJobData, StepJobData } from "./jobs.ts";
import { noTracing, type Tracing } from "../telemetry/tracing.ts";
import type { PushJobData } from "../webhooks/push.ts";
import { ACTIVATIONS, FINAL, PREFIX, STEPS, webhookQueue } from "./names.ts";
import { DEFAULT_QUEUE_SETTINGS, type QueueSettings } from "./settings.ts";

/** Everything a process needs to talk to the queue; one connection, shared. */
export interface Queues {
  readonly target: RedisTarget;
  readonly settings: QueueSettings;
  /** Spans of what is enqueued, claimed and recorded here. */
  readonly tracing: Tracing;
  readonly redis: Redis;
  readonly activations: Queue<ActivationJobData>;
  readonly final: Queue<FinalJobData>;
  readonly steps: Queue<StepJobData>;
  readonly flows: FlowProducer;
  /** A results queue by its name; made at first use. */
  results(name: string): Queue<ActivationResult>;
  /** The queue of a webhook by the webhook's name; made at first use. */
  webhook(name: string): Queue<PushJobData>;
  /** Gets each connection error; takes what ioredis hangs on it away. */
  readonly onError: (error: Error) => void;
  close(): Promise<void>;
}

/** Opens the queues. The caller closes them, after its workers and sentinel. */
export function openQueues(
  target: RedisTarget,
  options: {
    onError: (error: Error) => void;
    settings?: Partial<QueueSettings>;
    /** Default "command". "fail_fast" for a process whose callers wait: its calls reject at once while Redis is away. */
    role?: Extract<RedisRole, "command" | "fail_fast">;
    /** Default none. */
    tracing?: Tracing;
  },
): Queues {
  // BullMQ's own connections tell their errors as ioredis makes them.
  const onError = (error: Error): void => options.onError(withoutCommand(error));
  const redis = connectRedis(target, { role: options.role ?? "command", onError });
  const common = { connection: redis, prefix: PREFIX };
  const results = new Map<string, Queue<ActivationResult>>();
  const webhooks = new Map<string, Queue<PushJobData>>();

  function open<T>(name: string): Queue<T> {
    const queue = new Queue<T>(name, { ...common, streams: { events: { maxLen: 1_000 } } });
    queue.on("error", onError);
    return queue;
  }
  const activations = open<ActivationJobData>(ACTIVATIONS);
  const final = open<FinalJobData>(FINAL);
  const steps = open<StepJobData>(STEPS);
  const flows = new FlowProducer(common);
  flows.on("error", onError);

  return {
    target,
    settings: { ...DEFAULT_QUEUE_SETTINGS, ...options.settings },
    tracing: options.tracing ?? noTracing,
    redis,
    activations,
    final,
    steps,
    flows,
    onError,
    results(name) {
      const known = results.get(name) ?? open<ActivationResult>(name);
      results.set(name, known);
      return known;
    },
    webhook(name) {
      const known = webhooks.get(name) ?? open<PushJobData>(webhookQueue(name));
      webhooks.set(name, known);
      return known;
    },
    async close() {
      for (const part of [flows, activations, final, steps, ...results.values(), ...webhooks.values()]) await part.close();
      redis.disconnect(); // BullMQ does not close a connection it was given
    },
  };
}
