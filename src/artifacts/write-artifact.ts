// SPDX-License-Identifier: Apache-2.0
import { createWriteStream } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import { dirname } from "node:path";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { hasErrno, RollcallError } from "../errors.ts";
import { measured } from "./measured.ts";

/**
 * Streams one artifact to its place, hashing on the way; durable when it returns. It is written in place, not renamed
 * there: a live stream (events.jsonl) then survives kill -9 as far as it came, and an attempt's directory belongs to one
 * worker anyway. Throws "artifact_exists", "path_too_long" or the body's own error; the body is then destroyed and no file
 * left behind.
 */
export async function writeArtifact(target: string, body: Readable, mode: number): Promise<{ bytes: number; sha256: string }> {
  const { bytes, written } = measured(body);
  try {
    await mkdir(dirname(target), { recursive: true });
    await pipeline(bytes, createWriteStream(target, { flags: "wx", mode, flush: true })); // flush: fsync before it ends
  } catch (error) {
    body.destroy();
    // ENOTDIR and EISDIR: a file is where a directory of its path would be, or the other way round.
    if (["EEXIST", "ENOTDIR", "EISDIR"].some((code) => hasErrno(error, code)))
      throw new RollcallError("artifact_exists", `${target} is there already`, { cause: error });
    if (hasErrno(error, "ENAMETOOLONG")) throw new RollcallError("path_too_long", `${target} is too long a path`, { cause: error });
    await rm(target, { force: true });
    throw error;
  }
  return written();
}
