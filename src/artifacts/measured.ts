// SPDX-License-Identifier: Apache-2.0
import { createHash } from "node:crypto";
import { pipeline, Transform, type Readable } from "node:stream";
import { hasErrno, RollcallError } from "../errors.ts";

/**
 * The same bytes, counted and hashed on their way. An error of the body is one of `bytes`, and when `bytes` is destroyed so
 * is the body. `written` is right once all were read.
 */
export function measured(body: Readable): { bytes: Readable; written: () => { bytes: number; sha256: string } } {
  const hash = createHash("sha256");
  let count = 0;
  const counter = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      hash.update(chunk);
      count += chunk.length;
      done(null, chunk);
    },
  });
  pipeline(body, counter, () => {}); // whoever reads sees the error
  return { bytes: counter, written: () => ({ bytes: count, sha256: hash.digest("hex") }) };
}

/** Reads bytes only to measure them; null when there is no such file. */
export async function measuredFile(body: Readable): Promise<{ bytes: number; sha256: string } | null> {
  const { bytes, written } = measured(body);
  try {
    for await (const _ of bytes) void _;
    return written();
  } catch (error) {
    if (hasErrno(error, "ENOENT")) return null;
    throw error;
  }
}

/** The same bytes; fails with "sha256_differs" before its end when they are others. */
export function withSha256(body: Readable, expected: string): Readable {
  const hash = createHash("sha256");
  const checked = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      hash.update(chunk);
      done(null, chunk);
    },
    flush(done) {
      const sha256 = hash.digest("hex");
      done(sha256 === expected ? null : new RollcallError("sha256_differs", `the bytes have sha256 ${sha256}, expected ${expected}`));
    },
  });
  pipeline(body, checked, () => {}); // whoever reads sees the error
  return checked;
}
