// SPDX-License-Identifier: Apache-2.0
import { spawn } from "node:child_process";
import { open, readFile } from "node:fs/promises";
import { dirname } from "node:path";
import { RollcallError } from "../errors.ts";
import { findOnPath, findRedisServer } from "./binary.ts";
import type { KeeperOptions } from "./keeper.ts";
import { isPrivateDir, stateFiles, type EmbeddedSockets } from "./paths.ts";

const DEFAULT_LINGER_MS = 2_000;
const SHOWN_LINES = 8;
const SHOWN_BYTES = 2_000;

/** A keeper that this process started. */
export interface SpawnedKeeper {
  hasEnded(): boolean;
  /** Why it ended, if by its own fault: not when another keeper had the lock, its users left, or it was killed. */
  failure(): RollcallError | null;
}

/**
 * Starts a keeper that belongs to nobody: a session of its own, no terminal, an empty environment (ours may hold keys),
 * its output appended to keeper.log.
 * @throws RollcallError redis_missing
 */
export async function spawnKeeper(options: {
  stateDir: string;
  sockets: EmbeddedSockets;
  path: string;
  keeperEntry: string;
  lingerMs?: number;
}): Promise<SpawnedKeeper> {
  const told: KeeperOptions = {
    stateDir: options.stateDir,
    sockets: options.sockets,
    redisServer: await findRedisServer(options.path),
    setpriv: await findOnPath(["setpriv"], options.path),
    lingerMs: options.lingerMs ?? DEFAULT_LINGER_MS,
  };
  const logPath = stateFiles(options.stateDir).log;
  const logFile = await open(logPath, "a", 0o600);
  const { size: logStart } = await logFile.stat();
  let ended = false;
  let failure: RollcallError | null = null;
  const fail = (lines: string) =>
    new RollcallError(
      "redis_start_failed",
      `the embedded Redis in ${options.stateDir} did not start. Its last lines (all: ${logPath}):\n${lines}`,
    );

  const child = spawn(process.execPath, [options.keeperEntry, JSON.stringify(told)], {
    detached: true,
    cwd: options.stateDir,
    env: {},
    stdio: ["ignore", logFile.fd, logFile.fd],
  });
  child.unref();
  child.once("error", (error) => {
    failure = fail(error.message);
    ended = true;
  });
  child.once("exit", (code) => {
    void (code === 0 || code === null ? Promise.resolve(null) : lastLines(logPath, logStart).then(fail)).then((found) => {
      failure = found;
      ended = true;
    });
  });
  await logFile.close(); // the keeper has its own
  return { hasEnded: () => ended, failure: () => failure };
}

/** Where the keeper listens, as it (or the last one) wrote; null when there was none, or the directory is gone or not private. */
export async function readSockets(stateDir: string): Promise<EmbeddedSockets | null> {
  const text = await readFile(stateFiles(stateDir).sockets, "utf8").catch(() => null);
  if (text === null) return null;
  const sockets = JSON.parse(text) as EmbeddedSockets;
  return (await isPrivateDir(dirname(sockets.keeper))) ? sockets : null;
}

/** The end of what was logged since byte `from`. */
async function lastLines(path: string, from: number): Promise<string> {
  const file = await open(path, "r");
  try {
    const { size } = await file.stat();
    const start = Math.max(size < from ? 0 : from, size - SHOWN_BYTES); // the keeper may have emptied it
    const { bytesRead, buffer } = await file.read(Buffer.alloc(SHOWN_BYTES), 0, size - start, start);
    const lines = buffer.toString("utf8", 0, bytesRead).split("\n");
    return lines
      .filter((line) => line.trim() !== "")
      .slice(-SHOWN_LINES)
      .join("\n");
  } finally {
    await file.close();
  }
}
