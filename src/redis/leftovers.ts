// SPDX-License-Identifier: Apache-2.0
import { lstat, readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { hasErrno, messageOf } from "../errors.ts";
import type { Leftover } from "../host/leftover.ts";
import { readHolder, takeLockFile } from "../host/lock-file.ts";
import { isAlive } from "../host/process.ts";
import { readSockets } from "./keeper-start.ts";
import { stateFiles, type EmbeddedSockets } from "./paths.ts";
import { shutDownOrphan } from "./server.ts";

/**
 * What embedded servers left under a state root: of killed keepers the sockets, the lock, and a Redis that outlived one; and
 * the whole state, queue and key, of output directories that are gone. One that lives is left alone, and so is the state of an
 * output directory that is there: its run can go on.
 */
export async function* redisLeftovers(stateRoot: string): AsyncGenerator<Leftover, undefined> {
  for (const name of await readdir(stateRoot).catch(noneWhenMissing)) {
    if (!/^[0-9a-f]{12}$/.test(name)) continue;
    const stateDir = join(stateRoot, name);
    const { lock } = stateFiles(stateDir);
    const holder = await readHolder(lock);
    if (holder !== null && isAlive(holder)) continue;
    const outDir = await readFile(stateFiles(stateDir).outDir, "utf8").catch(() => null);
    if (outDir !== null && (await isGone(outDir))) {
      yield {
        kind: "redis_state",
        what: stateDir,
        why: `its output directory ${outDir} is gone`,
        remove: () =>
          underLock(stateDir, async () => ((await isGone(outDir)) ? rm(stateDir, { recursive: true, force: true }) : undefined)),
      };
    } else if (holder !== null) {
      yield {
        kind: "embedded_redis",
        what: lock,
        why: `its keeper (process ${holder.pid}) is dead`,
        remove: () => underLock(stateDir, () => Promise.resolve()),
      };
    }
  }
  return undefined;
}

/** Acts as the one keeper of the directory, after what the dead one left is gone. */
async function underLock(stateDir: string, act: () => Promise<void>): Promise<string | null> {
  try {
    const lock = await takeLockFile(stateFiles(stateDir).lock);
    if (!lock.held) return "a keeper has it now";
    try {
      const sockets = await readSockets(stateDir).catch(() => null);
      if (sockets !== null) await removeSockets(sockets);
      await act();
      return null;
    } finally {
      await lock.release();
    }
  } catch (error) {
    return messageOf(error);
  }
}

async function removeSockets({ redis, keeper }: EmbeddedSockets): Promise<void> {
  await shutDownOrphan(redis);
  for (const path of [redis, keeper]) await rm(path, { force: true });
}

async function isGone(path: string): Promise<boolean> {
  return lstat(path).then(
    () => false,
    (error: unknown) => hasErrno(error, "ENOENT"),
  );
}

function noneWhenMissing(error: unknown): string[] {
  if (hasErrno(error, "ENOENT")) return [];
  throw error;
}
