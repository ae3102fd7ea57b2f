// SPDX-License-Identifier: Apache-2.0
import { createHash } from "node:crypto";
import { lstat, realpath } from "node:fs/promises";
import { basename, dirname, join, relative, resolve } from "node:path";
import { hasErrno, RollcallError } from "../errors.ts";
import { makeDirectory, whyUnusable } from "../host/directory.ts";

/** The two unix sockets of one embedded Redis. */
export interface EmbeddedSockets {
  readonly redis: string;
  /** Each user holds one connection to the keeper's. */
  readonly keeper: string;
}

/** What lies in a state directory beside Redis' own `appendonlydir/`. */
export function stateFiles(stateDir: string): { lock: string; sockets: string; log: string; secretKey: string; outDir: string } {
  return {
    lock: join(stateDir, "keeper.lock"),
    sockets: join(stateDir, "sockets.json"),
    log: join(stateDir, "keeper.log"),
    secretKey: join(stateDir, "secret.key"),
    outDir: join(stateDir, "out-dir"),
  };
}

/**
 * Where the embedded Redis of one output directory keeps its state and its sockets. The sockets are named after the
 * state directory, so that one output directory used with two state roots gives two Redis that do not meet.
 * @param place.outDir its real path
 * @param place.socketDir a short, private directory
 * @throws RollcallError state_dir_inside_out, redis_socket_path_too_long
 */
export function embeddedPaths(place: { outDir: string; stateRoot: string; socketDir: string; platform: NodeJS.Platform }): {
  stateDir: string;
  sockets: EmbeddedSockets;
} {
  const stateDir = join(place.stateRoot, shortHash(place.outDir));
  if (!relative(place.outDir, stateDir).startsWith("..")) {
    throw new RollcallError(
      "state_dir_inside_out",
      `the state directory ${place.stateRoot} lies inside the output directory ${place.outDir}, which people publish; it will hold the key and the queue. Set ROLLCALL_STATE_DIR to a directory elsewhere`,
    );
  }
  const name = shortHash(stateDir);
  const sockets = { redis: join(place.socketDir, `${name}.sock`), keeper: join(place.socketDir, `${name}.keeper.sock`) };
  // sockaddr_un.sun_path less its final NUL. Beyond it Node and Redis cut the path short or fail misleadingly.
  const limit = place.platform === "darwin" ? 103 : 107;
  const length = Buffer.byteLength(sockets.keeper);
  if (length > limit) {
    throw new RollcallError(
      "redis_socket_path_too_long",
      `the socket path ${sockets.keeper} has ${length} bytes; at most ${limit} are possible. Set XDG_RUNTIME_DIR or TMPDIR to a directory with a shorter path`,
    );
  }
  return { stateDir, sockets };
}

/**
 * A directory for sockets: `<runtimeDir>/rollcall` when that is this user's, else `<tmpDir>/rollcall-<uid>`; made when missing.
 * @throws RollcallError directory_not_private
 */
export async function makeSocketDir(place: { runtimeDir?: string | undefined; tmpDir: string }): Promise<string> {
  // After `su` or `sudo`, XDG_RUNTIME_DIR often names another user's directory, or one that is gone.
  const usable = place.runtimeDir !== undefined && (await ownDirectoryMode(place.runtimeDir)) !== null;
  const path = usable ? join(place.runtimeDir!, "rollcall") : join(place.tmpDir, `rollcall-${process.getuid?.() ?? 0}`);
  await makePrivateDir(path);
  return path;
}

/** Makes a directory that only this user can enter, or checks that it is one. @throws RollcallError directory_not_private, directory_unusable */
export async function makePrivateDir(path: string): Promise<void> {
  const fix = "set state_dir (ROLLCALL_STATE_DIR) or XDG_RUNTIME_DIR, whichever it comes from, to a directory of this user's";
  await makeDirectory(path, { what: "a place for Redis' data and sockets", fix });
  if (!(await isPrivateDir(path))) {
    throw new RollcallError(
      "directory_not_private",
      `${path} must be a directory (no link) that belongs to this user and that nobody else can enter. Remove it, or \`chmod 700 ${path}\``,
    );
  }
}

/** Whether it is a directory of this user's that nobody else can enter. */
export async function isPrivateDir(path: string): Promise<boolean> {
  const mode = await ownDirectoryMode(path);
  return mode !== null && (mode & 0o077) === 0;
}

/** Real path of something that need not exist yet. */
export async function futureRealpath(path: string): Promise<string> {
  const absolute = resolve(path);
  try {
    return await realpath(absolute);
  } catch (error) {
    if (!hasErrno(error, "ENOENT") && !hasErrno(error, "ENOTDIR")) {
      const fix = "set state_dir (ROLLCALL_STATE_DIR), or HOME, to a directory that this user can write to";
      throw new RollcallError("directory_unusable", `cannot use ${absolute} for Redis' data: ${whyUnusable(error)}; ${fix}`, {
        cause: error,
      });
    }
    // What is in the way shows when it is made.
    return join(await futureRealpath(dirname(absolute)), basename(absolute));
  }
}

async function ownDirectoryMode(path: string): Promise<number | null> {
  const found = await lstat(path).catch(() => null);
  return found?.isDirectory() === true && found.uid === (process.getuid?.() ?? found.uid) ? found.mode : null;
}

function shortHash(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 12);
}
