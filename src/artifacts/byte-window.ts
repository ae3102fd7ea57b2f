// SPDX-License-Identifier: Apache-2.0
import { Transform } from "node:stream";

/**
 * Passes the first `head` bytes at once and the last `tail` bytes at the end; between them a line says how many were left out.
 * Holds `tail` bytes. It reads on whatever the amount, so its source never stalls.
 */
export function createByteWindow(head: number, tail: number): Transform {
  const ring = Buffer.alloc(tail);
  let passed = 0;
  /** Bytes that came after the head. */
  let after = 0;

  function keepLast(bytes: Buffer): void {
    for (let rest = bytes.subarray(Math.max(0, bytes.length - tail)), at = after + bytes.length - rest.length; rest.length > 0;) {
      const copied = rest.copy(ring, at % tail);
      rest = rest.subarray(copied);
      at += copied;
    }
    after += bytes.length;
  }
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      const now = chunk.subarray(0, head - passed);
      passed += now.length;
      keepLast(chunk.subarray(now.length));
      done(null, now);
    },
    flush(done) {
      if (after > tail) {
        this.push(`\n[... ${after - tail} bytes left out ...]\n`);
        this.push(ring.subarray(after % tail)); // with a tail of 0 both are empty
        this.push(ring.subarray(0, after % tail));
      } else this.push(ring.subarray(0, after));
      done();
    },
  });
}
