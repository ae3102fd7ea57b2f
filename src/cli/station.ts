// SPDX-License-Identifier: Apache-2.0
import { hostname } from "node:os";
import { join } from "node:path";
import type { Logger } from "pino";
import type { SecretKeys } from "../activation/secret-keys.ts";
import { openArtifactStore } from "../artifacts/open-store.ts";
import type { ArtifactStore } from "../artifacts/types.ts";
import type { Environment } from "../config/load.ts";
import type { Settings } from "../config/settings.ts";
import type { WorkerInfo } from "../contract/result.ts";
import { RollcallError } from "../errors.ts";
import { OUTPUT_FILES } from "../rollout/output-dir.ts";
import { deferred } from "../rollout/waiting.ts";
import { createLogger } from "../logging.ts";
import { startTracing } from "../telemetry/start-tracing.ts";
import type { Tracing } from "../telemetry/tracing.ts";
import { openQueues, type Queues } from "../queue/queues.ts";
import { startSentinel } from "../queue/sentinel.ts";
import { startRolloutSteps, type RolloutSteps } from "../resources/steps.ts";
import { LiveSecrets } from "../redact/index.ts";
import type { RedisTarget } from "../redis/connect.ts";
import { redisTrouble } from "../redis/trouble.ts";
import { resourcesLimitsOf } from "./resources.ts";
import { sparingly } from "./sparingly.ts";
import { reachRedis, requireSecretKey, type RedisOptions } from "./reach-redis.ts";
import { rollcallVersion } from "./version.ts";

/** What every process that takes part has: the queue, its keys, the store, a log, and a sentinel and the steps of rollouts at work. */
export interface Station {
  queues: Queues;
  keys: SecretKeys;
  store: ArtifactStore;
  steps: RolloutSteps;
  log: Logger;
  liveSecrets: LiveSecrets;
  tracing: Tracing;
  /** Rejects when the embedded Redis is gone for good. */
  lost: Promise<never>;
  /** After all workers. */
  close(): Promise<void>;
}

/** An end that is being recorded when the process stops; another process would record it again. */
const SENTINEL_GRACE_MS = 10_000;

export interface StationOptions extends RedisOptions {
  /** Where results are kept, unless the settings name a place. */
  artifacts: string | null;
  level: string;
  /** The kind of process, as traces name it. */
  service: string;
  destination: NodeJS.WritableStream;
}

/** Throws RollcallError when Redis, the keys or the store cannot be used. The caller closes the station. */
export async function openStation(options: StationOptions): Promise<Station> {
  const { settings } = options;
  const artifacts = settings.artifacts ?? options.artifacts;
  if (artifacts === null) {
    throw new RollcallError(
      "artifacts_missing",
      "set artifacts (or ROLLCALL_ARTIFACTS) to what all workers share: s3://BUCKET/PREFIX or a directory",
    );
  }
  const undo: (() => Promise<void>)[] = [];
  const close = async (): Promise<void> => {
    for (const step of undo.splice(0).reverse()) await step();
  };
  try {
    const liveSecrets = new LiveSecrets();
    const log = createLogger({ level: options.level, secrets: liveSecrets, destination: options.destination });
    const lost = deferred<never>();
    const tracing = await tracingOf(options.env, options.service, log);
    undo.push(() => tracing.close());
    requireSecretKey(settings);
    const redis = await reachRedis(options, log, lost.reject);
    undo.push(redis.close);
    const store = await openArtifactStore(artifacts, settings.s3);
    const queues = openQueuesOf(redis.target, settings, log, { tracing });
    undo.push(() => queues.close());
    const sentinel = await startSentinel({ queues, store, log });
    undo.push(() => sentinel.close({ graceMs: SENTINEL_GRACE_MS }));
    const keys = redis.keys!;
    const steps = startRolloutSteps({ queues, store, keys, log, limits: resourcesLimitsOf(settings), worker: stepWorker() });
    undo.push(() => steps.close({ graceMs: SENTINEL_GRACE_MS }));
    return { queues, keys, store, steps, log, liveSecrets, tracing, lost: lost.promise, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Who does steps, in the records of attempts that had no session. */
function stepWorker(): WorkerInfo {
  const host = hostname();
  return { id: `${host}-${process.pid}-steps`, host, version: rollcallVersion(), codex_version: null, sandbox_provider: null };
}

/** The station of a process that works or serves until it is stopped; its log goes to stderr. */
export function openServingStation({
  settings,
  env,
  outDir,
  service,
}: Pick<StationOptions, "settings" | "env" | "outDir" | "service">): Promise<Station> {
  const artifacts = outDir === null ? null : join(outDir, OUTPUT_FILES.artifacts);
  return openStation({ settings, env, outDir, service, artifacts, level: settings.log_level ?? "info", destination: process.stderr });
}

/** Traces of this process, where OpenTelemetry's variables ask for them. The caller closes it last. Throws RollcallError. */
export function tracingOf(env: Environment, service: string, log: Logger): Promise<Tracing> {
  const onProblem = (reason: string): void => log.warn({ reason }, "traces could not be sent");
  return startTracing(env, { service, version: rollcallVersion(), onProblem });
}

/** The queues as the settings want them. The caller closes them. */
export function openQueuesOf(
  target: RedisTarget,
  settings: Settings,
  log: Logger,
  options: { tracing: Tracing; role?: "command" | "fail_fast" },
): Queues {
  return openQueues(target, {
    ...options,
    // Each of a dozen connections tries again several times a second while Redis is away.
    onError: sparingly((error, untold) =>
      log.warn(
        { err: error, ...(untold === 0 ? {} : { alike_before: untold }) },
        redisTrouble(error)?.text ?? "a connection to Redis failed",
      ),
    ),
    settings: {
      lock_duration_ms: settings.queue.lock_duration_ms,
      lock_renew_ms: settings.queue.lock_renew_ms,
      stalled_interval_ms: settings.queue.stalled_interval_ms,
      no_capable_worker_ms: settings.queue.no_capable_worker_seconds * 1_000,
      no_worker_deadline_ms:
        settings.queue.no_worker_deadline_seconds === undefined ? null : settings.queue.no_worker_deadline_seconds * 1_000,
      max_result_bytes: settings.queue.max_result_bytes,
      retry_base_ms: settings.retry.base_seconds * 1_000,
      retry_max_ms: settings.retry.max_seconds * 1_000,
      model_max_concurrent: settings.limiter.max_concurrent ?? null,
      model_grow_ms: settings.limiter.grow_seconds * 1_000,
      breaker_after: settings.breaker.after,
      breaker_base_ms: settings.breaker.base_seconds * 1_000,
      breaker_max_ms: settings.breaker.max_seconds * 1_000,
      keep_ended_ms: settings.retention.ended_jobs_days * 86_400_000,
      keep_dead_ms: settings.retention.dead_webhooks_days * 86_400_000,
    },
  });
}
