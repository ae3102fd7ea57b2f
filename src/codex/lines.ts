// SPDX-License-Identifier: Apache-2.0

/** One line of a byte stream, without its newline. */
type Line =
  | { kind: "whole"; text: string; bytes: number }
  /** Longer than allowed: its first bytes as text, and how many it had. */
  | { kind: "cut"; head: string; bytes: number };

/** Of a line that is too long, this much is kept. */
const HEAD_BYTES = 4_096;
/** Room for a line that goes on in the next chunk; grows by doubling, and shrinks back after a long line. */
const SMALL = 65_536;
const NEWLINE = 0x0a;

/** The lines of a byte stream, in bounded memory. Rejects with the stream's error. */
export async function* readLines(chunks: AsyncIterable<Uint8Array>, maxBytes: number): AsyncGenerator<Line> {
  const splitter = new LineSplitter(maxBytes);
  for await (const chunk of chunks) yield* splitter.push(chunk);
  yield* splitter.end();
}

/**
 * Splits a byte stream into lines in bounded memory. Works on bytes and decodes whole lines, so a character cut by a
 * chunk's border stays whole. Call `end` once after the last chunk: it returns a last line that had no newline.
 */
class LineSplitter {
  readonly #maxBytes: number;
  /** Beginning of the current line, as far as it came in earlier chunks. */
  #begun = Buffer.allocUnsafe(SMALL);
  /** Bytes of the current line so far; beyond the limit they are only counted. */
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  push(chunk: Uint8Array): Line[] {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    const lines: Line[] = [];
    let from = 0;
    for (let at = bytes.indexOf(NEWLINE); at !== -1; at = bytes.indexOf(NEWLINE, from)) {
      const rest = bytes.subarray(from, at);
      lines.push(this.#bytes === 0 ? this.#line(rest, rest.length) : this.#finish(rest));
      from = at + 1;
    }
    this.#keep(bytes.subarray(from));
    return lines;
  }

  end(): Line[] {
    return this.#bytes === 0 ? [] : [this.#finish(Buffer.alloc(0))];
  }

  #finish(rest: Buffer): Line {
    this.#keep(rest);
    const line = this.#line(this.#begun.subarray(0, Math.min(this.#bytes, this.#begun.length)), this.#bytes);
    this.#bytes = 0;
    if (this.#begun.length > SMALL) this.#begun = Buffer.allocUnsafe(SMALL);
    return line;
  }

  #line(known: Buffer, bytes: number): Line {
    if (bytes <= this.#maxBytes) return { kind: "whole", text: known.toString("utf8"), bytes };
    return { kind: "cut", head: known.toString("utf8", 0, HEAD_BYTES), bytes };
  }

  #keep(part: Buffer): void {
    const kept = Math.min(this.#bytes + part.length, Math.max(this.#maxBytes, HEAD_BYTES));
    if (kept > this.#begun.length) {
      const larger = Buffer.allocUnsafe(Math.max(kept, 2 * this.#begun.length));
      this.#begun.copy(larger, 0, 0, this.#bytes);
      this.#begun = larger;
    }
    if (this.#bytes < kept) part.copy(this.#begun, this.#bytes, 0, kept - this.#bytes);
    this.#bytes += part.length;
  }
}
