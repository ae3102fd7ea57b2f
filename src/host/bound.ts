// SPDX-License-Identifier: Apache-2.0
import { setMaxListeners } from "node:events";

/** How long a check may take, and what ends it early. */
export interface CheckBound {
  seconds: number;
  signal: AbortSignal;
}

/**
 * Aborts with the signal, or after the time, or when asked; the caller ends it. Not AbortSignal.any and .timeout: in Node
 * 20.20 what they make together is garbage-collected before it fires.
 */
export class Bound {
  readonly #controller = new AbortController();
  readonly #timer: NodeJS.Timeout;
  readonly #outer: AbortSignal;

  constructor({ seconds, signal }: CheckBound) {
    this.#outer = signal;
    this.#timer = setTimeout(() => this.abort(new Error("the time is over")), seconds * 1000);
    setMaxListeners(0, this.signal); // the SDK adds one per request
    if (signal.aborted) this.#follow();
    else signal.addEventListener("abort", this.#follow, { once: true });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  abort(reason: unknown): void {
    this.#controller.abort(reason);
  }

  end(): void {
    clearTimeout(this.#timer);
    this.#outer.removeEventListener("abort", this.#follow);
  }

  readonly #follow = (): void => this.abort(this.#outer.reason);
}
