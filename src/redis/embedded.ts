// SPDX-License-Identifier: Apache-2.0
import { realpath } from "node:fs/promises";
import { hostname } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import { messageOf, RollcallError } from "../errors.ts";
import { createOnly } from "../host/files.ts";
import { readHolder } from "../host/lock-file.ts";
import { isAlive } from "../host/process.ts";
import type { RedisTarget } from "./connect.ts";
import { joinKeeper, type KeeperConnection } from "./keeper-socket.ts";
import { readSockets, spawnKeeper, type SpawnedKeeper } from "./keeper-start.ts";
import { embeddedPaths, futureRealpath, makePrivateDir, makeSocketDir, stateFiles, type EmbeddedSockets } from "./paths.ts";

export interface EmbeddedOptions {
  /** The output directory this Redis is for; it must exist. */
  readonly outDir: string;
  /** $ROLLCALL_STATE_DIR, or rollcall/ under $XDG_STATE_HOME or ~/.local/state. */
  readonly stateRoot: string;
  /** $XDG_RUNTIME_DIR. */
  readonly runtimeDir?: string | undefined;
  /** The system temp directory. */
  readonly tmpDir: string;
  /** A PATH: redis-server or valkey-server, and setpriv, are looked up there. */
  readonly path: string;
  /** workers/redis.js, built. */
  readonly keeperEntry: string;
  readonly log: (message: string) => void;
  /** Called once when Redis is gone and could not be brought back. Its connections have ended, or do so within seconds; close the handle. */
  readonly onLost: (error: Error) => void;
  /** How long Redis stays after its last user, in ms; only what the command that starts it says counts. Default 2000. */
  readonly lingerMs?: number;
}

/** One user's hold on an embedded Redis. */
export interface EmbeddedRedis {
  /** Stays the same when Redis is started again: connections come back by themselves. */
  readonly target: RedisTarget;
  readonly stateDir: string;
  readonly keeperPid: number;
  /** Lets go; Redis stops after its last user did. Does not wait for that. Keeps this process alive until called. */
  close(): Promise<void>;
}

const POLL_MS = 25;
const UNREACHABLE_MS = 30_000;

/**
 * The embedded Redis of an output directory: joins the one that runs, else starts it. When its keeper dies, all users
 * bring it back by themselves, with the same data (what was acknowledged is on disk).
 * @throws RollcallError out_dir_missing, state_dir_inside_out, directory_not_private, redis_socket_path_too_long,
 * redis_missing, redis_start_failed (with Redis' last lines), redis_other_host, keeper_unreachable, keeper_silent
 */
export async function startEmbedded(options: EmbeddedOptions): Promise<EmbeddedRedis> {
  const outDir = await realpath(options.outDir).catch((error: unknown) => {
    throw new RollcallError("out_dir_missing", `the output directory ${options.outDir} cannot be used: ${messageOf(error)}`);
  });
  const socketDir = await makeSocketDir(options);
  const place = { outDir, stateRoot: await futureRealpath(options.stateRoot), socketDir, platform: process.platform };
  const { stateDir, sockets: preferred } = embeddedPaths(place);
  await makePrivateDir(stateDir);
  await createOnly(stateFiles(stateDir).outDir, outDir, 0o600); // whose it is: its name is but a hash

  const closing = new AbortController();
  const gone = new AbortController();
  const first = await reachKeeper(options, stateDir, preferred, closing.signal);
  let { connection } = first;
  let restoring: Promise<void> = Promise.resolve();

  function watch(): void {
    connection.socket.once("close", () => {
      if (!closing.signal.aborted) restoring = restore();
    });
  }
  async function restore(): Promise<void> {
    options.log("the keeper of the embedded Redis is gone; starting it again");
    try {
      ({ connection } = await reachKeeper(options, stateDir, first.sockets, closing.signal));
      watch();
    } catch (error) {
      if (closing.signal.aborted) return;
      gone.abort();
      options.onLost(error instanceof Error ? error : new Error(String(error)));
    }
  }
  watch();

  return {
    target: { kind: "socket", path: first.sockets.redis, gone: gone.signal },
    stateDir,
    get keeperPid() {
      return connection.keeperPid;
    },
    close: async () => {
      closing.abort(); // ends the connection too
      await restoring;
    },
  };
}

/** Joins the keeper, starting one whenever none lives; of several that start at once the lock lets one through. */
async function reachKeeper(
  options: EmbeddedOptions,
  stateDir: string,
  preferred: EmbeddedSockets,
  closing: AbortSignal,
): Promise<{ connection: KeeperConnection; sockets: EmbeddedSockets }> {
  const { lock } = stateFiles(stateDir);
  const deadline = performance.now() + UNREACHABLE_MS;
  let spawned: SpawnedKeeper | null = null;
  for (;;) {
    // A keeper that was started with another XDG_RUNTIME_DIR listens elsewhere than ours would.
    const sockets = (await readSockets(stateDir)) ?? preferred;
    const connection = await joinKeeper(sockets.keeper, closing);
    if (connection !== null) return { connection, sockets };

    const failure = spawned?.failure() ?? null;
    if (failure !== null) throw failure;
    const holder = await readHolder(lock);
    if (holder !== null && holder.host !== hostname()) {
      throw new RollcallError(
        "redis_other_host",
        `the embedded Redis of ${options.outDir} belongs to process ${holder.pid} on host ${holder.host}. Run this command there, or use REDIS_URL; if that process is gone, delete ${lock}`,
      );
    }
    if ((spawned === null || spawned.hasEnded()) && (holder === null || !isAlive(holder))) {
      spawned = await spawnKeeper({ ...options, stateDir, sockets });
    }
    if (performance.now() > deadline) {
      throw new RollcallError(
        "keeper_unreachable",
        `the keeper of the embedded Redis (${holder === null ? `lock ${lock}` : `process ${holder.pid}`}) cannot be reached at ${sockets.keeper}; see ${stateFiles(stateDir).log}`,
      );
    }
    await delay(POLL_MS, undefined, { signal: closing });
  }
}
