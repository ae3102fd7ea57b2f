// SPDX-License-Identifier: Apache-2.0
import { tmpdir } from "node:os";
import { fileURLToPath } from "node:url";
import type { Logger } from "pino";
import { parseSecretKeys, type SecretKeys } from "../activation/secret-keys.ts";
import { openArtifactStore } from "../artifacts/open-store.ts";
import type { ArtifactStore } from "../artifacts/types.ts";
import type { Environment } from "../config/load.ts";
import type { Settings } from "../config/settings.ts";
import { RollcallError } from "../errors.ts";
import { deferred } from "../rollout/waiting.ts";
import { createLogger } from "../logging.ts";
import { openQueues, type Queues } from "../queue/queues.ts";
import { startSentinel } from "../queue/sentinel.ts";
import { LiveSecrets } from "../redact/index.ts";
import { connectRedis, type RedisTarget } from "../redis/connect.ts";
import { claimForRun } from "../redis/claim-for-run.ts";
import { startEmbedded } from "../redis/embedded.ts";
import { checkRedis, requireRedisPassword } from "../redis/policy.ts";
import { loadOrCreateStateKey } from "../redis/state-key.ts";

/** What every process that takes part has: the queue, its keys, the store, a log, and a sentinel that is at work. */
export interface Station {
  queues: Queues;
  keys: SecretKeys;
  store: ArtifactStore;
  log: Logger;
  liveSecrets: LiveSecrets;
  /** Rejects when the embedded Redis is gone for good. */
  lost: Promise<never>;
  /** After all workers. */
  close(): Promise<void>;
}

/** An end that is being recorded when the process stops; another process would record it again. */
const SENTINEL_GRACE_MS = 10_000;

export interface StationOptions {
  settings: Settings;
  env: Environment;
  /** For the embedded Redis; must exist. null: there is none, only REDIS_URL will do. */
  outDir: string | null;
  /** The run whose output directory this is: an embedded Redis serves one, and forgets an earlier one of a deleted directory. */
  runId?: string;
  /** Where results are kept, unless the settings name a place. */
  artifacts: string | null;
  level: string;
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
    const redis = await reachRedis(options, log, lost.reject);
    undo.push(redis.close);
    const store = await openArtifactStore(artifacts, settings.s3);
    const queues = openQueues(redis.target, {
      onError: (error) => log.warn({ err: error }, "a connection to Redis failed"),
      settings: {
        lock_duration_ms: settings.queue.lock_duration_ms,
        lock_renew_ms: settings.queue.lock_renew_ms,
        stalled_interval_ms: settings.queue.stalled_interval_ms,
        keep_ended_ms: settings.retention.ended_jobs_days * 86_400_000,
      },
    });
    undo.push(() => queues.close());
    const sentinel = await startSentinel({ queues, store, log });
    undo.push(() => sentinel.close({ graceMs: SENTINEL_GRACE_MS }));
    return { queues, keys: redis.keys, store, log, liveSecrets, lost: lost.promise, close };
  } catch (error) {
    await close();
    throw error;
  }
}

interface ReachedRedis {
  target: RedisTarget;
  keys: SecretKeys;
  close: () => Promise<void>;
}

async function reachRedis(
  { settings, env, outDir, runId }: StationOptions,
  log: Logger,
  onLost: (error: Error) => void,
): Promise<ReachedRedis> {
  if (settings.redis_url !== undefined) return reachShared(settings.redis_url, settings.secret_key, log);
  if (outDir === null) {
    throw new RollcallError("redis_url_missing", "set REDIS_URL, or name a run's output directory with --out to join its embedded Redis");
  }
  const embedded = await startEmbedded({
    outDir,
    stateRoot: settings.state_dir,
    ...(settings.runtime_dir === undefined ? {} : { runtimeDir: settings.runtime_dir }),
    tmpDir: tmpdir(),
    path: env["PATH"] ?? "",
    keeperEntry: fileURLToPath(new URL("../../workers/redis.js", import.meta.url)),
    log: (message) => log.info(message),
    onLost,
  });
  if (runId !== undefined) await claimForRun(embedded.target, runId);
  const key = await loadOrCreateStateKey(embedded.stateDir);
  return { target: embedded.target, keys: parseSecretKeys(key.toString("base64")), close: () => embedded.close() };
}

async function reachShared(url: string, secretKey: string | undefined, log: Logger): Promise<ReachedRedis> {
  if (secretKey === undefined) {
    throw new RollcallError(
      "secret_key_missing",
      "REDIS_URL needs ROLLCALL_SECRET_KEY: grants' secrets are sealed with it, and all producers and workers need the same; make one with: openssl rand -base64 32",
    );
  }
  const keys = parseSecretKeys(secretKey);
  const target: RedisTarget = { kind: "url", url };
  await requireRedisPassword(target);
  const redis = connectRedis(target, { role: "command", onError: () => undefined });
  try {
    const { warnings } = await checkRedis(redis, target, { allowEviction: false });
    for (const warning of warnings) log.warn(warning);
  } finally {
    redis.disconnect();
  }
  return { target, keys, close: () => Promise.resolve() };
}
