// SPDX-License-Identifier: Apache-2.0
import { createReadStream } from "node:fs";

export interface FileLine {
  /** From 1. */
  number: number;
  /** Where it begins, in bytes. */
  offset: number;
  /** Its whole length without the line break, in bytes, also when it is too long. */
  length: number;
  bytes: Buffer;
  /** Over the limit: `bytes` holds only the beginning. */
  tooLong: boolean;
  /** False only for a last line without a line break. */
  ended: boolean;
}

/**
 * The lines of a file, one at a time, holding at most one of `maxBytes`. The rest of a longer line is skipped over.
 * `onChunk` sees every byte of the file, e.g. for a digest.
 */
export async function* readLines(path: string, maxBytes: number, onChunk?: (chunk: Buffer) => void): AsyncGenerator<FileLine> {
  let parts: Buffer[] = [];
  let kept = 0;
  let seen = 0;
  let offset = 0;
  let number = 1;
  const line = (ended: boolean): FileLine => ({
    number,
    offset,
    length: seen,
    bytes: Buffer.concat(parts),
    tooLong: seen > maxBytes,
    ended,
  });
  for await (const chunk of createReadStream(path, { highWaterMark: 256 * 1024 }) as AsyncIterable<Buffer>) {
    onChunk?.(chunk);
    let from = 0;
    while (from < chunk.length) {
      const newline = chunk.indexOf(0x0a, from);
      const to = newline === -1 ? chunk.length : newline;
      if (kept < maxBytes) {
        const part = chunk.subarray(from, Math.min(to, from + maxBytes - kept));
        parts.push(part);
        kept += part.length;
      }
      seen += to - from;
      if (newline === -1) break;
      yield line(true);
      offset += seen + 1;
      parts = [];
      kept = 0;
      seen = 0;
      number++;
      from = to + 1;
    }
  }
  if (seen > 0) yield line(false);
}

/** Text of a line; null when it is not UTF-8. A byte order mark at the beginning is dropped. */
export function decodeLine(bytes: Uint8Array): string | null {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return null;
  }
}
