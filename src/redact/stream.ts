// SPDX-License-Identifier: Apache-2.0
import { Transform, type Readable, type TransformCallback } from "node:stream";
import { Matcher } from "./matcher.ts";
import { REDACTED, type SecretSet } from "./secret-set.ts";

const REPLACEMENT = Buffer.from(REDACTED);

/**
 * Redacts bytes on their way, as `redactText` does text (UTF-8; other bytes pass unharmed). The output does not depend
 * on how the input is cut into chunks. It holds back only what may belong to a secret that has begun: nothing at the
 * end of an ordinary line, at most a few times the longest form.
 * `endsAtCut`: the end of the stream is a cut, see `redactText`. `structured`: lines of JSON, in which values of 1 to 3
 * characters are left alone: they stand in its numbers and words.
 */
export function createRedactStream(set: SecretSet, options: { endsAtCut?: boolean; structured?: boolean } = {}): Transform {
  return new RedactStream(set, options);
}

class RedactStream extends Transform {
  readonly #set: SecretSet;
  readonly #matcher: Matcher;
  #pending: Buffer = Buffer.alloc(0);
  /** Offset of the first pending byte. */
  #base = 0;

  constructor(set: SecretSet, { endsAtCut = false, structured = false }: { endsAtCut?: boolean; structured?: boolean }) {
    super();
    this.#set = set;
    this.#matcher = new Matcher(structured ? set.structured : set.text, { endsAtCut });
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    this.#pending = this.#pending.length === 0 ? chunk : Buffer.concat([this.#pending, chunk]);
    this.#matcher.advance(this.#pending, this.#base, false);
    this.#release(this.#matcher.held);
    done();
  }

  override _flush(done: TransformCallback): void {
    this.#matcher.advance(this.#pending, this.#base, true);
    this.#release(this.#base + this.#pending.length);
    done();
  }

  /** Passes on everything before the offset `until`. */
  #release(until: number): void {
    const { intervals } = this.#matcher;
    let from = this.#base;
    const pass = (to: number): void => {
      if (to > from) this.push(this.#pending.subarray(from - this.#base, to - this.#base));
      from = Math.max(from, to);
    };
    for (const interval of intervals) {
      if (interval.start >= until) break;
      if (!interval.shown) {
        pass(interval.start);
        this.push(REPLACEMENT);
        this.#set.replaced(1);
        interval.shown = true;
      }
      from = Math.max(from, Math.min(interval.end, until));
    }
    pass(until);
    this.#matcher.intervals = intervals.filter(({ end }) => end > until);
    this.#pending = this.#pending.subarray(until - this.#base);
    this.#base = until;
  }
}

/**
 * A scanner for files that are handed on as they are. `scan` counts the places where a whole form of a secret stands
 * (values of 1 to 3 characters do not count); it reads the stream to its end, in bounded memory, and rejects with the
 * stream's error.
 */
export function findSecrets(set: SecretSet): { scan: (stream: Readable) => Promise<number> } {
  return { scan: (stream) => countSecrets(set, stream) };
}

/** Whether a whole form of a secret stands in a text, as {@link findSecrets} would find it. */
export function holdsSecret(set: SecretSet, text: string): boolean {
  const matcher = new Matcher(set.structured, { find: "whole" });
  matcher.advance(Buffer.from(text), 0, true);
  return matcher.intervals.length > 0;
}

async function countSecrets(set: SecretSet, stream: Readable): Promise<number> {
  const matcher = new Matcher(set.structured, { find: "whole" });
  let hits = 0;
  let pending: Buffer = Buffer.alloc(0);
  let base = 0;
  for await (const chunk of stream) {
    const bytes = Buffer.from(chunk as Buffer);
    pending = pending.length === 0 ? bytes : Buffer.concat([pending, bytes]);
    matcher.advance(pending, base, false);
    pending = pending.subarray(matcher.read - base);
    base = matcher.read;
    // The last match may still grow, or become one with those before it that a longer one contains.
    const open = matcher.intervals.findIndex(({ end }) => end > matcher.held);
    hits += matcher.intervals.splice(0, open === -1 ? matcher.intervals.length - 1 : open).length;
  }
  matcher.advance(pending, base, true);
  return hits + matcher.intervals.length;
}
