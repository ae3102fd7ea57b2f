// SPDX-License-Identifier: Apache-2.0
import { createHash } from "node:crypto";
import { mkdir, open, rm, type FileHandle } from "node:fs/promises";
import { dirname } from "node:path";
import { Transform, type Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { hasErrno, RollcallError } from "../errors.ts";

/**
 * Streams one artifact to its place, hashing on the way; durable when it returns. It is written in place, not renamed
 * there: a live stream (events.jsonl) then survives kill -9 as far as it came, and an attempt's directory belongs to one
 * worker anyway. Throws "artifact_exists" or the body's own error; the body is then destroyed and no file left behind.
 */
export async function writeArtifact(target: string, body: Readable, mode: number): Promise<{ bytes: number; sha256: string }> {
  const file = await createFile(target, mode).catch((error: unknown) => {
    body.destroy();
    throw error;
  });
  const hash = createHash("sha256");
  let bytes = 0;
  const measure = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      hash.update(chunk);
      bytes += chunk.length;
      done(null, chunk);
    },
  });
  try {
    await pipeline(body, measure, file.createWriteStream({ autoClose: false }));
    await file.sync();
  } catch (error) {
    await rm(target, { force: true });
    throw error;
  } finally {
    await file.close();
  }
  return { bytes, sha256: hash.digest("hex") };
}

async function createFile(target: string, mode: number): Promise<FileHandle> {
  await mkdir(dirname(target), { recursive: true });
  try {
    return await open(target, "wx", mode);
  } catch (error) {
    if (hasErrno(error, "EEXIST")) throw new RollcallError("artifact_exists", `${target} is there already`, { cause: error });
    throw error;
  }
}
