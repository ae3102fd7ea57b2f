// SPDX-License-Identifier: Apache-2.0
import { Redis } from "ioredis";
import { RollcallError } from "../errors.ts";

/**
 * Where a Redis listens: a `redis://` or `rediss://` URL, or a unix socket (the embedded one). Once `gone` is aborted it will not come
 * back: connections that are not `blocking` end, and their commands reject.
 */
export type RedisTarget =
  | { readonly kind: "url"; readonly url: string }
  | { readonly kind: "socket"; readonly path: string; readonly gone?: AbortSignal };

/**
 * `blocking`: for BullMQ workers and anything that waits in Redis; commands wait for as long as Redis is away.
 * `command`: everything else; outlasts a loss of about 25 s, then its commands reject.
 * `fail_fast`: for answering somebody who waits (HTTP); rejects at once while Redis is away, also before `ready`, and soon where
 * it does not answer.
 */
export type RedisRole = "blocking" | "command" | "fail_fast";

/** The part of ioredis' options that we set. Fits ioredis, and BullMQ's `connection`. */
export interface RedisConnectionOptions {
  readonly path?: string;
  readonly host?: string;
  readonly port?: number;
  readonly db?: number;
  readonly username?: string;
  readonly password?: string;
  readonly tls?: Record<string, never>;
  readonly maxRetriesPerRequest: number | null;
  readonly enableOfflineQueue?: boolean;
  readonly commandTimeout?: number;
  readonly retryStrategy: (times: number) => number | null;
}

type Role = Pick<RedisConnectionOptions, "maxRetriesPerRequest" | "enableOfflineQueue" | "commandTimeout">;
type Address = Omit<RedisConnectionOptions, keyof Role | "retryStrategy">;

const MAX_RECONNECT_DELAY_MS = 2_000;
/** A Redis that is connected and does not answer (stopped, partitioned) counts as away; a busy disk, to which it syncs each write, takes seconds. */
const ANSWER_MS = 5_000;

const ROLE_OPTIONS: Record<RedisRole, Role> = {
  blocking: { maxRetriesPerRequest: null },
  command: { maxRetriesPerRequest: 20 },
  fail_fast: { maxRetriesPerRequest: 0, enableOfflineQueue: false, commandTimeout: ANSWER_MS },
};

/**
 * Opens a connection that comes back by itself. The caller closes it (`quit` or `disconnect`): BullMQ does not close
 * instances it is given. A command in flight when the connection breaks is sent again: it may run twice.
 * @param options.onError gets each connection error, credentials removed; it must not throw.
 * @throws RollcallError redis_url_invalid
 */
export function connectRedis(target: RedisTarget, options: { role: RedisRole; onError: (error: Error) => void }): Redis {
  const redis = new Redis(redisOptions(target, options.role));
  redis.on("error", (error: Error) => options.onError(withoutCommand(error)));
  return redis;
}

/** Connection options, for BullMQ classes that make (and then close) their own connections. @throws RollcallError redis_url_invalid */
export function redisOptions(target: RedisTarget, role: RedisRole): RedisConnectionOptions {
  // A BullMQ worker whose connection has ended asks again without a pause, so that nothing else of its process runs.
  const gone = role === "blocking" ? undefined : goneForGood(target);
  return {
    ...addressOptions(target),
    ...ROLE_OPTIONS[role],
    retryStrategy: (times) => (gone?.aborted === true ? null : reconnectDelayMs(times)),
  };
}

/** Aborted when it is known that this Redis will not come back; undefined where that cannot be known. */
function goneForGood(target: RedisTarget): AbortSignal | undefined {
  return target.kind === "socket" ? target.gone : undefined;
}

/** Of a connection that waits for ever: rejects once Redis is gone for good. */
export async function unlessGone<T>(target: RedisTarget, work: Promise<T>): Promise<T> {
  const gone = goneForGood(target);
  if (gone === undefined) return work;
  let tell = (): void => undefined;
  const ended = new Promise<never>((_resolve, reject) => {
    tell = () => reject(new Error("Redis is gone for good"));
    if (gone.aborted) tell();
    else gone.addEventListener("abort", tell, { once: true });
  });
  return Promise.race([work, ended]).finally(() => gone.removeEventListener("abort", tell));
}

/** `redis://:secret@host:6379/0` -> `redis://host:6379/0`; a text that is no URL gives "(not a URL)". For messages and logs. */
export function redactRedisUrl(text: string): string {
  if (!URL.canParse(text)) return "(not a URL)";
  const url = new URL(text);
  return `${url.protocol}//${url.host}${url.pathname}`; // the query may hold credentials as well
}

/** The target as people may see it, without credentials. */
export function describeRedis(target: RedisTarget): string {
  return target.kind === "socket" ? target.path : redactRedisUrl(target.url);
}

function reconnectDelayMs(times: number): number {
  return Math.min(times * 100, MAX_RECONNECT_DELAY_MS);
}

function addressOptions(target: RedisTarget): Address {
  if (target.kind === "socket") return { path: target.path };
  const url = URL.canParse(target.url) ? new URL(target.url) : null;
  const database = url === null ? null : /^\/?(\d*)$/.exec(url.pathname);
  if (url === null || !["redis:", "rediss:"].includes(url.protocol) || url.hostname === "" || database === null) {
    throw new RollcallError(
      "redis_url_invalid",
      `the Redis URL is not usable: ${redactRedisUrl(target.url)}. Expected redis://[user:password@]host[:port][/database number], or rediss:// for TLS`,
    );
  }
  return {
    host: url.hostname.replace(/^\[(.*)\]$/, "$1"),
    port: url.port === "" ? 6379 : Number(url.port),
    db: Number(database[1] ?? 0),
    ...(url.username === "" ? {} : { username: decodeURIComponent(url.username) }),
    ...(url.password === "" ? {} : { password: decodeURIComponent(url.password) }),
    ...(url.protocol === "rediss:" ? { tls: {} } : {}),
  };
}

/** ioredis hangs the failed command on its errors, and that of AUTH or HELLO holds the password: loggers would print it. */
export function withoutCommand(error: Error): Error {
  if ("command" in error) delete error.command;
  return error;
}
