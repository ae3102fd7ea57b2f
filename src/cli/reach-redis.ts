// SPDX-License-Identifier: Apache-2.0
import { tmpdir } from "node:os";
import { fileURLToPath } from "node:url";
import type { Logger } from "pino";
import { parseSecretKeys, type SecretKeys } from "../activation/secret-keys.ts";
import type { Environment } from "../config/load.ts";
import type { Settings } from "../config/settings.ts";
import { RollcallError } from "../errors.ts";
import { EXIT } from "../rollout/exit-code.ts";
import { claimForRun } from "../redis/claim-for-run.ts";
import { connectRedis, type RedisTarget } from "../redis/connect.ts";
import { startEmbedded } from "../redis/embedded.ts";
import { checkRedis, requireRedisPassword } from "../redis/policy.ts";
import { loadOrCreateStateKey } from "../redis/state-key.ts";

export interface RedisOptions {
  settings: Settings;
  env: Environment;
  /** For the embedded Redis; must exist. null: there is none, only REDIS_URL will do. */
  outDir: string | null;
  /** The run whose output directory this is: an embedded Redis serves one, and forgets an earlier one of a deleted directory. */
  runId?: string;
}

export interface ReachedRedis {
  target: RedisTarget;
  /** null: a shared Redis, and ROLLCALL_SECRET_KEY is not set. */
  keys: SecretKeys | null;
  /** Lets go of an embedded one. */
  close: () => Promise<void>;
}

/**
 * The Redis of REDIS_URL, checked; else the embedded one of the output directory, joined or started. `onLost`: the embedded
 * one is gone for good. Throws RollcallError.
 */
export async function reachRedis(options: RedisOptions, log: Logger, onLost: (error: Error) => void): Promise<ReachedRedis> {
  const { settings, env, outDir, runId } = options;
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
    onLost: (error) => onLost(lostForGood(error)),
  });
  if (runId !== undefined) await claimForRun(embedded.target, runId);
  const key = await loadOrCreateStateKey(embedded.stateDir);
  return { target: embedded.target, keys: parseSecretKeys(key.toString("base64")), close: () => embedded.close() };
}

function lostForGood(error: Error): RollcallError {
  const message = `the embedded Redis is gone and could not be started again; what ended is saved, and once this is put right the same command goes on: ${error.message}`;
  return new RollcallError("redis_lost", message, { cause: error, exitCode: EXIT.interrupted });
}

/** For whoever seals or opens secrets. Throws RollcallError "secret_key_missing". */
export function requireSecretKey({ redis_url, secret_key }: Pick<Settings, "redis_url" | "secret_key">): void {
  if (redis_url === undefined || secret_key !== undefined) return;
  throw new RollcallError(
    "secret_key_missing",
    "REDIS_URL needs ROLLCALL_SECRET_KEY: grants' secrets are sealed with it, and all producers and workers need the same; make one with: openssl rand -base64 32",
  );
}

async function reachShared(url: string, secretKey: string | undefined, log: Logger): Promise<ReachedRedis> {
  const keys = secretKey === undefined ? null : parseSecretKeys(secretKey);
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
