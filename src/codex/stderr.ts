// SPDX-License-Identifier: Apache-2.0
import { Transform } from "node:stream";

/** The end of a stderr as far as it came. */
export interface StderrEnd {
  text: string;
  /** The text begins somewhere in a longer one: tell redaction. */
  startsMidStream: boolean;
  /** Of the whole stream so far. */
  totalBytes: number;
}

/** How much of the end of stderr is looked at. A startup failure of 0.171.0 that echoes a long body is 43 kB; enough for two of them. */
export const STDERR_TAIL_BYTES = 128 * 1024;

/** Passes stderr on unchanged and remembers its end. Somebody must read it (or `resume()`), so that Codex never stalls. */
export class StderrTail extends Transform {
  readonly #maxBytes: number;
  #chunks: Buffer[] = [];
  #held = 0;
  #total = 0;

  constructor(maxBytes: number = STDERR_TAIL_BYTES) {
    super();
    this.#maxBytes = maxBytes;
  }

  /** May be asked at any time, also while the stream hangs. */
  window(): StderrEnd {
    const held = Buffer.concat(this.#chunks);
    const window = held.subarray(Math.max(0, held.length - this.#maxBytes));
    const startsMidStream = this.#total > window.length;
    return { text: wholeCharacters(window, startsMidStream).toString("utf8"), startsMidStream, totalBytes: this.#total };
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: (error: Error | null, data: Buffer) => void): void {
    this.#total += chunk.length;
    this.#chunks.push(chunk);
    this.#held += chunk.length;
    // Compacted when twice the window is held: linear, and many tiny chunks do not pile up.
    if (this.#held > 2 * this.#maxBytes || this.#chunks.length > 1_024) {
      this.#chunks = [Buffer.from(Buffer.concat(this.#chunks).subarray(-this.#maxBytes))];
      this.#held = this.#chunks[0]!.length;
    }
    done(null, chunk);
  }
}

/** The end of a stderr.log, as it was when it was live. The log keeps the beginning as well, and says what it left out between. */
export function storedStderr(log: Buffer): Pick<StderrEnd, "text" | "startsMidStream"> {
  const window = log.subarray(Math.max(0, log.length - STDERR_TAIL_BYTES));
  const startsMidStream = window.length < log.length;
  return { text: wholeCharacters(window, startsMidStream).toString("utf8"), startsMidStream };
}

/** Without the rest of a character that the window's beginning cut through. */
function wholeCharacters(window: Buffer, cut: boolean): Buffer {
  const first = cut ? window.subarray(0, 4).findIndex((byte) => (byte & 0xc0) !== 0x80) : 0;
  return window.subarray(Math.max(0, first));
}
