// SPDX-License-Identifier: Apache-2.0
import { Redis } from "ioredis";
import { messageOf, RollcallError } from "../errors.ts";
import { describeRedis, redisOptions, type RedisTarget } from "./connect.ts";
import { redisTrouble } from "./trouble.ts";

/** What a Redis turned out to be; goes into the run's manifest. */
export interface RedisCheck {
  /** As Redis reports it, e.g. "7.0.15"; null when INFO does not say. */
  readonly version: string | null;
  /** null when INFO does not say. */
  readonly eviction_policy: string | null;
  /** null when INFO does not say. */
  readonly append_only: boolean | null;
  /** One sentence each, with what to do. */
  readonly warnings: readonly string[];
}

/**
 * Whether this Redis keeps what it is given. An evicting one loses jobs and results in silence, so it is refused.
 * Everything is read from INFO, which works where CONFIG is forbidden.
 * @param options.allowEviction turns that refusal into a warning, which the caller records
 * @throws RollcallError redis_eviction_policy, redis_refuses_writes, redis_unreachable (also for a wrong password; when, the connection's role decides)
 */
export async function checkRedis(redis: Redis, target: RedisTarget, options: { allowEviction: boolean }): Promise<RedisCheck> {
  const info = await readInfo(redis, target);
  const policy = info.get("maxmemory_policy") ?? null;
  const appendOnly = info.has("aof_enabled") ? info.get("aof_enabled") === "1" : null;
  const warnings: string[] = [];

  if (policy === null) {
    warnings.push(
      `the Redis at ${describeRedis(target)} does not say its eviction policy. It must be noeviction; to verify: \`${redisCli(target)} CONFIG GET maxmemory-policy\`, or the provider's settings page`,
    );
  } else if (policy !== "noeviction") {
    const problem =
      `the Redis at ${describeRedis(target)} evicts keys when memory is short (maxmemory-policy ${policy}): queued activations and results would vanish. ` +
      `Set it now: \`${redisCli(target)} CONFIG SET maxmemory-policy noeviction\`, and for good: the line \`maxmemory-policy noeviction\` in redis.conf (or the provider's parameter of that name)`;
    if (!options.allowEviction) throw new RollcallError("redis_eviction_policy", problem);
    warnings.push(`${problem}. Allowed by setting`);
  }
  if (appendOnly === false) {
    warnings.push(
      `the Redis at ${describeRedis(target)} keeps no append-only file: what is queued is lost when it stops. \`${redisCli(target)} CONFIG SET appendonly yes\`, and \`appendonly yes\` in redis.conf`,
    );
  }
  await requireWrites(redis, target);
  return { version: info.get("redis_version") ?? null, eviction_policy: policy, append_only: appendOnly, warnings };
}

/**
 * Refuses a TCP Redis that anybody on this host's network may use, which includes every sandbox that shares it. Asked
 * on a connection of its own, without credentials: a password in our URL does not mean that Redis wants one.
 * @throws RollcallError redis_without_password, redis_unreachable (within 5 s)
 */
export async function requireRedisPassword(target: RedisTarget): Promise<void> {
  if (target.kind === "socket") return; // guarded by the file's permissions; not in the sandboxes' file system
  const { username: _username, password: _password, ...anonymous } = redisOptions(target, "fail_fast");
  const redis = new Redis({
    ...anonymous,
    protocol: 2, // 3 would begin with HELLO, which is refused before PING can be
    lazyConnect: true,
    enableReadyCheck: false,
    disableClientInfo: true,
    db: 0, // no SELECT
    connectTimeout: 5_000,
    commandTimeout: 5_000,
    retryStrategy: () => null,
  });
  let connectionError: Error | null = null;
  redis.on("error", (error: Error) => (connectionError = error));
  try {
    await redis.connect();
    await redis.ping();
  } catch (error) {
    if (isReplyError(error)) return; // NOAUTH, NOPERM, or DENIED (protected mode)
    throw unreachable(target, connectionError ?? error);
  } finally {
    redis.disconnect();
  }
  throw new RollcallError(
    "redis_without_password",
    `the Redis at ${describeRedis(target)} answers without a password, and the sandboxes share this host's network: the model could read and change the queue. ` +
      "Set `requirepass` in redis.conf (or an ACL without an open default user) and put the password into the URL: redis://:PASSWORD@host",
  );
}

/** A full Redis, a replica and one that cannot save answer reads as if nothing were wrong. Throws what it answers. */
export async function probeWrites(redis: Redis): Promise<void> {
  await redis.set("{rollcall}:write-probe", "1", "PX", 1_000);
}

async function requireWrites(redis: Redis, target: RedisTarget): Promise<void> {
  try {
    await probeWrites(redis);
  } catch (error) {
    const trouble = redisTrouble(error);
    if (trouble === null || trouble.kind === "away") throw unreachable(target, error);
    throw new RollcallError("redis_refuses_writes", `the Redis at ${describeRedis(target)} cannot be used: ${trouble.text}`);
  }
}

async function readInfo(redis: Redis, target: RedisTarget): Promise<Map<string, string>> {
  let text: string;
  try {
    text = await redis.info();
  } catch (error) {
    if (/^NOPERM|^ERR unknown command/.test(messageOf(error))) return new Map(); // INFO is forbidden as well, or renamed
    throw unreachable(target, error);
  }
  const lines = text.split(/\r?\n/).map((line): [string, string] => {
    const colon = line.indexOf(":");
    return [line.slice(0, Math.max(colon, 0)), line.slice(colon + 1)];
  });
  return new Map(lines);
}

/** The command line that reaches this Redis, without its password (redis-cli takes that from REDISCLI_AUTH). */
function redisCli(target: RedisTarget): string {
  return target.kind === "socket" ? `redis-cli -s ${target.path}` : `redis-cli -u ${describeRedis(target)}`;
}

function unreachable(target: RedisTarget, error: unknown): RollcallError {
  return new RollcallError(
    "redis_unreachable",
    `no answer from the Redis at ${describeRedis(target)}: ${messageOf(error)}. Is it up, and are address and password right?`,
  );
}

/** An answer of Redis, as opposed to a connection that failed. */
function isReplyError(error: unknown): boolean {
  return error instanceof Error && error.name === "ReplyError";
}
