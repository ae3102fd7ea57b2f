// SPDX-License-Identifier: Apache-2.0

/** Notices that a reader has waited in vain for some time. */
export interface Quiet {
  /** Resolves when, once it counts, nothing was heard for the time, work on what was heard left out. */
  readonly reached: Promise<void>;
  /** Something was heard; until `heard(false)` it is being worked on. */
  heard(working: boolean): void;
  /** The time counts from now on. */
  count(): void;
  /** Leaves no timer behind. */
  end(): void;
}

export function quietFor(ms: number): Quiet {
  let timer: NodeJS.Timeout | undefined;
  let [counts, busy] = [false, false];
  let resolve = (): void => undefined;
  const reached = new Promise<void>((done) => (resolve = done));
  const restart = (): void => {
    clearTimeout(timer);
    if (counts && !busy) timer = setTimeout(resolve, ms);
  };
  return {
    reached,
    heard(working) {
      busy = working;
      restart();
    },
    count() {
      counts = true;
      restart();
    },
    end() {
      counts = false;
      clearTimeout(timer);
    },
  };
}
