// SPDX-License-Identifier: Apache-2.0
import { once } from "node:events";
import { rm, stat, truncate } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import { RollcallError } from "../errors.ts";
import { replaceFile } from "../host/files.ts";
import { takeLockFile } from "../host/lock-file.ts";
import { freeMb } from "../host/room.ts";
import { listenForUsers, type KeeperUsers } from "./keeper-socket.ts";
import { stateFiles, type EmbeddedSockets } from "./paths.ts";
import { shutDownOrphan, spawnRedis } from "./server.ts";

/** All that a keeper is told. It travels as one JSON argument and holds no secret. */
export interface KeeperOptions {
  readonly stateDir: string;
  readonly sockets: EmbeddedSockets;
  /** Absolute path. */
  readonly redisServer: string;
  /** Absolute path. Without it a Redis outlives its killed keeper until the next one starts. */
  readonly setpriv: string | null;
  /** How long Redis stays after its last user, in ms. */
  readonly lingerMs: number;
}

const LOG_LIMIT_BYTES = 1_048_576;
/** A Redis that is ready for less than this died early; after so many in a row the keeper gives up. */
const EARLY_DEATH_MS = 10_000;
const MAX_EARLY_DEATHS = 3;
/** With less than this on its disk Redis is not started again: it would end with its next write. */
const ROOM_MB = 16;
const ROOM_CHECK_MS = 1_000;

/**
 * Owns the Redis of one state directory: starts it, starts it again when it dies (on a full disk: once there is room), stops it after its last user (or when
 * `stop` fires), and takes sockets and lock away. Returns at once when another keeper has the directory.
 * @throws RollcallError redis_ended when Redis does not start or keeps dying; its own words are on our stdout
 */
export async function runKeeper(options: KeeperOptions, stop: AbortSignal, log: (message: string) => void): Promise<void> {
  const files = stateFiles(options.stateDir);
  const lock = await takeLockFile(files.lock);
  if (!lock.held) return;
  let users: KeeperUsers | null = null;
  try {
    if (lock.tookOverFrom !== null) log(`keeper ${lock.tookOverFrom.pid} died; this one takes over`);
    await shortenLog(files.log);
    await shutDownOrphan(options.sockets.redis);
    await rm(options.sockets.keeper, { force: true }); // a dead keeper's
    // Stays when we end: connections of users that are left come back to this path only, whoever starts the next keeper.
    await replaceFile(files.sockets, JSON.stringify(options.sockets), 0o600);
    users = await listenForUsers(options.sockets.keeper, options.lingerMs);
    await superviseRedis(options, users, AbortSignal.any([stop, users.gone]), log);
  } finally {
    users?.close();
    for (const path of [options.sockets.keeper, options.sockets.redis]) await rm(path, { force: true });
    await lock.release();
  }
}

async function superviseRedis(
  options: KeeperOptions,
  users: KeeperUsers,
  stop: AbortSignal,
  log: (message: string) => void,
): Promise<void> {
  const stopped = once(stop, "abort");
  let earlyDeaths = 0;
  while (earlyDeaths < MAX_EARLY_DEATHS) {
    const redis = spawnRedis({ ...options, socket: options.sockets.redis });
    try {
      const ready = await Promise.race([redis.ready, stopped]);
      if (stop.aborted) return;
      if (ready === false) throw new RollcallError("redis_ended", `Redis did not start: ${await redis.ended}`);
      users.setReady(true);
      const readyAt = performance.now();
      await Promise.race([redis.ended, stopped]);
      if (stop.aborted) return;
      log(`Redis ended by itself: ${await redis.ended}`);
      const isEarly = performance.now() - readyAt < EARLY_DEATH_MS && (await hasRoom(options.stateDir));
      earlyDeaths = isEarly ? earlyDeaths + 1 : 0;
    } finally {
      users.setReady(false);
      await redis.stop();
    }
    if (!(await roomFor(options.stateDir, users, stop, log))) return;
  }
  throw new RollcallError("redis_ended", `Redis died ${earlyDeaths} times soon after its start`);
}

/**
 * Redis cannot acknowledge what it cannot write (appendfsync always), so it ends on a full disk. Whoever uses it waits meanwhile, as
 * for one that is started again; workers with a floor take nothing. False: nobody waits any more.
 */
async function roomFor(stateDir: string, users: KeeperUsers, stop: AbortSignal, log: (message: string) => void): Promise<boolean> {
  for (let waits = 0; ; waits++) {
    if (await hasRoom(stateDir)) return true;
    if (stop.aborted || users.count === 0) return false;
    if (waits === 0) log(`the disk of ${stateDir} is full: Redis is started again when ${ROOM_MB} MB are free there`);
    await delay(ROOM_CHECK_MS, undefined, { signal: stop }).catch(() => undefined);
  }
}

async function hasRoom(stateDir: string): Promise<boolean> {
  return ((await freeMb(stateDir)) ?? Infinity) >= ROOM_MB;
}

/** Only the holder of the lock may; the file is open for appending, so that our output goes on at its new end. */
async function shortenLog(path: string): Promise<void> {
  const { size } = await stat(path);
  if (size > LOG_LIMIT_BYTES) await truncate(path);
}
