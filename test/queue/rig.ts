// SPDX-License-Identifier: Apache-2.0
import { randomBytes } from "node:crypto";
import { rm } from "node:fs/promises";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { expect, vi } from "vitest";
import type { Claim, RunEnd, StopReason } from "../../src/activation/ports.ts";
import { parseSecretKeys, type SecretKeys } from "../../src/activation/secret-keys.ts";
import { openDirectoryStore } from "../../src/artifacts/directory-store.ts";
import type { ArtifactStore } from "../../src/artifacts/types.ts";
import { activationSchema, type SessionActivation } from "../../src/contract/activation.ts";
import type { ActivationResult } from "../../src/contract/result.ts";
import { startActivationWorker, type ActivationWorker, type ActivationWorkerOptions } from "../../src/queue/activation-worker.ts";
import { openQueues, type Queues } from "../../src/queue/queues.ts";
import { startSentinel, type Sentinel } from "../../src/queue/sentinel.ts";
import type { QueueSettings } from "../../src/queue/settings.ts";
import type { WorkerFacts } from "../../src/queue/worker-lease.ts";
import { resultOf } from "../support/result-documents.ts";
import { startTestRedis, type TestRedis, type TestRedisOptions } from "../support/redis.ts";

/** Short, so that what takes a minute in service takes seconds here. Claims last: a disk that is busy for seconds must not lose one. */
export const TEST_SETTINGS: Partial<QueueSettings> = {
  lock_duration_ms: 30_000,
  lock_renew_ms: 500,
  stalled_interval_ms: 500,
  retry_base_ms: 50,
  retry_max_ms: 200,
  unable_recheck_ms: 200,
  breaker_after: 0,
};

/** For tests in which a claim runs out because its worker died. */
export const SHORT_CLAIMS: Partial<QueueSettings> = { ...TEST_SETTINGS, lock_duration_ms: 3_000 };

export const TEST_KEYS: SecretKeys = parseSecretKeys(Buffer.alloc(32, 7).toString("base64"));

export type Run = (claim: Claim) => Promise<RunEnd>;

interface WorkerOptions extends Pick<ActivationWorkerOptions, "onLockLost" | "defaultModel"> {
  concurrency?: number;
  keys?: SecretKeys;
  facts?: Partial<WorkerFacts>;
}

/** A real Redis, a real store, and what a test starts on them; close() ends everything. */
export interface Rig {
  redis: TestRedis;
  queues: Queues;
  store: ArtifactStore;
  storeRoot: string;
  worker(run: Run, options?: WorkerOptions): Promise<ActivationWorker>;
  sentinel(): Promise<Sentinel>;
  /** Another process' view of the queues. */
  open(): Queues;
  /** The committed result, once it is there and recorded by `final`. */
  ended(activationId: string, generation?: number, timeoutMs?: number): Promise<ActivationResult>;
  close(): Promise<void>;
}

export async function startRig(settings: Partial<QueueSettings> = {}, redisOptions?: TestRedisOptions): Promise<Rig> {
  const redis = await startTestRedis(redisOptions);
  const storeRoot = mkdtempSync(join(tmpdir(), "rollcall-queue-"));
  const store = await openDirectoryStore(storeRoot);
  const closing: (() => Promise<unknown>)[] = [];
  const open = (): Queues => {
    const queues = openQueues(redis.target, { onError: () => undefined, settings: { ...TEST_SETTINGS, ...settings } });
    closing.unshift(() => queues.close());
    return queues;
  };
  const queues = open();
  const log = pino({ level: "silent" });
  return {
    redis,
    queues,
    store,
    storeRoot,
    open,
    async worker(run, { concurrency = 4, keys = TEST_KEYS, facts = {}, ...more } = {}) {
      const worker = await startActivationWorker({
        queues: open(),
        keys,
        concurrency,
        store,
        run,
        log,
        ...more,
        facts: { ...workerFacts(store.id), key_ids: keys.map(({ id }) => id), ...facts },
      });
      closing.unshift(() => worker.close({ graceMs: 3_000 }));
      return worker;
    },
    async sentinel() {
      const sentinel = await startSentinel({ queues: open(), store, log });
      closing.unshift(() => sentinel.close({ graceMs: 3_000 }));
      return sentinel;
    },
    async ended(activationId, generation = 0, timeoutMs = 30_000) {
      return vi.waitFor(
        async () => {
          const job = await queues.final.getJob(generation === 0 ? `f-${activationId}` : `f-${activationId}.g${generation}`);
          expect(job?.finishedOn, `${activationId} has not ended`).toBeDefined();
          const result = await store.readCommit(activationId);
          expect(result?.generation).toBe(generation);
          return result!;
        },
        { timeout: timeoutMs, interval: 50 },
      );
    },
    async close() {
      for (const close of closing) await close();
      await redis.stop();
      await rm(storeRoot, { recursive: true, force: true, maxRetries: 5 }); // what is still being written to
    },
  };
}

export function workerFacts(storeId: string): WorkerFacts {
  return {
    worker_id: `w-${randomBytes(4).toString("hex")}`,
    host: "test",
    pid: process.pid,
    providers: ["host"],
    codex_versions: ["0.144.4"],
    key_ids: [],
    schema_minor: 0,
    store_id: storeId,
    classes: [],
    held_back: null,
  };
}

export function activationOf(id: string, facts: Record<string, unknown> = {}): SessionActivation {
  return activationSchema.parse({
    activation_id: id,
    run_id: "run-1",
    episode_id: { rollout_id: `r-${id}` },
    task_id: { taskset: "office", task_id: id },
    input: "do it",
    reply_to: null,
    ...facts,
  });
}

/** A straight line that takes an attempt and commits a completed result. */
export function completes(store: ArtifactStore): Run {
  return async ({ activation, generation, ledger }) => {
    const { attempt } = await ledger.takeAttempt();
    return { kind: "ended", ...(await store.commit(completedOf(activation, generation, attempt))) };
  };
}

export function completedOf(activation: SessionActivation, generation: number, attempt: number): ActivationResult {
  const { activation_id, run_id, task_id, metadata } = activation;
  const episode_id = { ...activation.episode_id, attempt };
  return resultOf(activation_id, { run_id, task_id, generation, episode_id, metadata });
}

/** Runs until it is told to stop, as a Codex session would. `started` hears of each claim. */
export function runsUntilStopped(started: (claim: Claim, attempt: number) => void): Run {
  return async (claim) => {
    const { attempt } = await claim.ledger.takeAttempt();
    started(claim, attempt);
    const reason = await stopReason(claim.signal);
    return { kind: "handed_back", reason: reason.kind };
  };
}

export function stopReason(signal: AbortSignal): Promise<StopReason> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(signal.reason as StopReason);
    signal.addEventListener("abort", () => resolve(signal.reason as StopReason), { once: true });
  });
}
