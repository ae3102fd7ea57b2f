// SPDX-License-Identifier: Apache-2.0
import { DelayedError, UnrecoverableError, Worker } from "bullmq";
import type { Logger } from "pino";
import { RollcallError } from "../errors.ts";
import { closeWorker } from "../queue/close-worker.ts";
import { PREFIX, webhookQueue } from "../queue/names.ts";
import { redisOptions } from "../redis/connect.ts";
import type { PushJobData } from "./push.ts";
import { SendFailed, sendOnce, sendPauseMs, type SendPorts } from "./send.ts";
import { allWebhooks, findWebhook } from "./subscription.ts";

/** So long a change of the webhooks may go unseen. */
const LOOK_MS = 2_000;

export interface WebhookSenders {
  /** Ends what is being sent within `graceMs`; what is cut off is sent again, by whoever serves next. */
  close(options: { graceMs: number }): Promise<void>;
}

interface Sender {
  close(graceMs: number): Promise<void>;
}

/**
 * Sends what webhooks are to be told, in this process. Each has a queue and a BullMQ worker of its own, so that a slow receiver
 * holds up nobody else's. The caller closes it before the queues.
 */
export function startWebhookSenders(ports: SendPorts & { log: Logger; lookMs?: number }): WebhookSenders {
  const { queues, lookMs = LOOK_MS } = ports;
  const senders = new Map<string, Promise<Sender>>();
  let looking: Promise<void> | null = null;
  let closed = false;

  async function look(): Promise<void> {
    const wanted = new Set((await allWebhooks(queues)).filter(({ disabled }) => disabled === null).map(({ name }) => name));
    if (closed) return;
    for (const name of wanted) {
      if (senders.has(name)) continue;
      const started = startSender(ports, name);
      senders.set(name, started);
      started.catch((error: Error) => {
        senders.delete(name); // Redis went away in between: at the next look
        queues.onError(error);
      });
    }
    for (const [name, sender] of senders) {
      if (wanted.has(name)) continue;
      senders.delete(name);
      void sender.then((one) => one.close(0)).catch(queues.onError);
    }
  }
  const tick = (): void =>
    void (looking ??= look()
      .catch(queues.onError)
      .finally(() => (looking = null)));
  const timer = setInterval(tick, lookMs);
  tick();

  return {
    async close({ graceMs }) {
      closed = true;
      clearInterval(timer);
      await looking;
      await Promise.allSettled([...senders.values()].map(async (sender) => (await sender).close(graceMs)));
    },
  };
}

async function startSender(ports: SendPorts & { log: Logger }, name: string): Promise<Sender> {
  const { queues, settings, log } = ports;
  const stopping = new AbortController();
  const sending = new Set<Promise<unknown>>();
  await queues.webhook(name).setGlobalConcurrency(settings.concurrency);

  const worker = new Worker<PushJobData, { status: number }>(
    webhookQueue(name),
    (job, token) => {
      const one = (async () => {
        const webhook = await findWebhook(queues, name);
        if (webhook === null || webhook.disabled !== null) {
          await job.moveToDelayed(Date.now() + LOOK_MS, token); // it was taken off, or disabled, a moment ago
          throw new DelayedError();
        }
        try {
          return await sendOnce(ports, webhook, job.data, job.attemptsMade, stopping.signal);
        } catch (error) {
          if (error instanceof SendFailed || error instanceof UnrecoverableError || stopping.signal.aborted) throw error;
          // A fault on our side (the store is away, a key is missing) says nothing of the receiver: tried again until it is mended.
          log.error({ err: error, webhook: name, delivery_id: job.id }, "a result could not be made ready to be pushed");
          throw new SendFailed(error instanceof RollcallError ? error.message : "a fault of the server; its log has more", null);
        }
      })();
      sending.add(one);
      return one.finally(() => sending.delete(one));
    },
    {
      connection: redisOptions(queues.target, "blocking"),
      prefix: PREFIX,
      concurrency: settings.concurrency,
      lockDuration: Math.max(queues.settings.lock_duration_ms, 2 * settings.timeout_ms),
      stalledInterval: queues.settings.stalled_interval_ms,
      maxStalledCount: queues.settings.max_stalled_count,
      runRetryDelay: 1_000,
      settings: {
        backoffStrategy: (attemptsMade, _type, error) =>
          sendPauseMs(settings, attemptsMade, error instanceof SendFailed ? error.retryAfterMs : null, Math.random()),
      },
    },
  );
  worker.on("error", queues.onError);
  worker.on("completed", ({ id, data }, { status }) => {
    log.info({ webhook: name, delivery_id: id, activation_id: data.activation_id, status }, "a result was pushed");
  });
  worker.on("failed", (job, error) => {
    const about = {
      webhook: name,
      delivery_id: job?.id,
      activation_id: job?.data.activation_id,
      attempts: job?.attemptsMade,
      reason: error.message,
    };
    if (job?.finishedOn === undefined) log.info(about, "a result could not be pushed; it is tried again");
    else log.warn(about, "a result could not be pushed: it is a dead letter (replay it when the receiver is well)");
  });
  return {
    async close(graceMs) {
      const idle = (): Promise<unknown> => Promise.allSettled(sending);
      await closeWorker(queues, worker, { idle, graceMs });
      stopping.abort();
    },
  };
}
