// SPDX-License-Identifier: Apache-2.0

export interface Deferred<T> {
  promise: Promise<T>;
  resolve: (value: T) => void;
  reject: (error: unknown) => void;
}

/** A promise that is settled from outside; nobody has to await it. (Promise.withResolvers is not in Node 20.) */
export function deferred<T>(): Deferred<T> {
  let resolve!: (value: T) => void;
  let reject!: (error: unknown) => void;
  const promise = new Promise<T>((done, failed) => {
    resolve = done;
    reject = failed;
  });
  promise.catch(() => undefined); // whoever awaits it sees it
  return { promise, resolve, reject };
}

/** Resolves at an abort; never rejects. */
export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
