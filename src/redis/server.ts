// SPDX-License-Identifier: Apache-2.0
import { spawn } from "node:child_process";
import { connect } from "node:net";
import { Redis } from "ioredis";
import { RollcallError } from "../errors.ts";
import { redisOptions, type RedisTarget } from "./connect.ts";

/** One run of redis-server as our child. */
export interface RedisProcess {
  /** True when it answers (its data is loaded), false when it ended before. */
  readonly ready: Promise<boolean>;
  /** How it ended: "exit code 1", "signal SIGKILL", or why it could not be run. */
  readonly ended: Promise<string>;
  /** Ends it orderly, after 10 s by force. Returns when it is dead. */
  stop(): Promise<void>;
}

const STOP_MS = 10_000;

/**
 * Starts a Redis that keeps everything it acknowledged, on a unix socket only. Its output goes where ours goes, its
 * environment is empty. With setpriv it dies with this process, however that ends.
 */
export function spawnRedis(options: { redisServer: string; setpriv: string | null; stateDir: string; socket: string }): RedisProcess {
  const config = [
    ["--port", "0"],
    ["--unixsocket", options.socket],
    ["--unixsocketperm", "700"],
    ["--dir", options.stateDir],
    ["--appendonly", "yes"],
    ["--appendfsync", "always"],
    ["--save", ""],
    ["--maxmemory-policy", "noeviction"],
  ];
  const [program = "", ...args] = [
    ...(options.setpriv === null ? [] : [options.setpriv, "--pdeathsig", "KILL"]),
    options.redisServer,
    ...config.flat(),
  ];
  const child = spawn(program, args, { stdio: ["ignore", "inherit", "inherit"], env: {} });
  const ended = new Promise<string>((resolve) => {
    child.once("error", (error) => resolve(error.message));
    child.once("exit", (code, signal) => resolve(signal === null ? `exit code ${code}` : `signal ${signal}`));
  });
  return {
    ready: redisAnswers({ kind: "socket", path: options.socket }, ended),
    ended,
    stop: async () => {
      child.kill("SIGTERM");
      const force = setTimeout(() => child.kill("SIGKILL"), STOP_MS);
      await ended;
      clearTimeout(force);
    },
  };
}

/**
 * Ends a Redis that outlived its keeper (possible without setpriv): two on one append-only file destroy it. To be
 * called by the holder of the state directory's lock only.
 * @throws RollcallError redis_orphan when it does not end within 10 s
 */
export async function shutDownOrphan(socket: string): Promise<void> {
  const deadline = performance.now() + STOP_MS;
  while (await sendShutdown(socket)) {
    if (performance.now() > deadline) {
      throw new RollcallError(
        "redis_orphan",
        `a Redis of an earlier keeper still listens on ${socket} and does not shut down; end it by hand`,
      );
    }
  }
}

/** True when somebody was there to be told; returns when the connection is closed, after 1 s at most. */
function sendShutdown(socket: string): Promise<boolean> {
  return new Promise((resolve) => {
    let connected = false;
    const connection = connect(socket, () => {
      connected = true;
      connection.write("SHUTDOWN NOSAVE\r\n"); // NOSAVE is about snapshots; the append-only file is synced
    });
    connection.setTimeout(1_000, () => connection.destroy());
    connection.on("error", () => undefined); // nobody listens, or it died while being told
    connection.on("close", () => resolve(connected));
    connection.resume();
  });
}

/** Waits until a Redis that was just started answers with its data loaded: true; false when `ended` comes first. */
export async function redisAnswers(target: RedisTarget, ended: Promise<unknown>): Promise<boolean> {
  // A quicker retry than other connections have: a start takes about 40 ms.
  const redis = new Redis({ ...redisOptions(target, "blocking"), retryStrategy: () => 20 });
  redis.on("error", () => undefined); // not there yet; `ended` tells when it never will be
  const pong = redis.ping().then(
    () => true,
    () => false, // disconnected below
  );
  try {
    return await Promise.race([pong, ended.then(() => false)]);
  } finally {
    redis.disconnect();
  }
}
