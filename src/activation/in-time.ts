// SPDX-License-Identifier: Apache-2.0
import { stageFailure } from "./stage-failure.ts";

/** One step of making a sandbox. */
export interface BoundedStep {
  /** What is done, for the message: "making the sandbox". */
  what: string;
  /** See the setting sandbox.create_seconds. */
  seconds: number;
  /** The claim's. */
  stop: AbortSignal;
}

/** A step that is told to stop gives back what it had begun, in milliseconds; one that hangs is left to itself after this. */
const STOP_MS = 5_000;

/**
 * Rejects with StageFailure "sandbox_failed" when the step takes too long, or hangs when the claim is to stop. `work` is told by
 * its signal; should it answer after that, `late` gets what it made.
 */
export async function inTime<T>(
  { what, seconds, stop }: BoundedStep,
  work: (signal: AbortSignal) => Promise<T>,
  late: (made: T) => void = () => undefined,
): Promise<T> {
  const stopped = stageFailure("sandbox_failed", `told to stop while ${what}`);
  if (stop.aborted) throw stopped;
  const over = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  let onStop = (): void => undefined;
  const givenUp = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => {
      const why = stageFailure("sandbox_failed", `${what} took longer than ${seconds} s (setting sandbox.create_seconds)`);
      reject(why); // before the work hears of it: this is the reason that counts
      over.abort(why);
    }, seconds * 1_000);
    onStop = () => {
      clearTimeout(timer);
      timer = setTimeout(() => reject(stopped), STOP_MS);
      over.abort(stopped);
    };
    stop.addEventListener("abort", onStop, { once: true });
  });
  const working = work(over.signal);
  try {
    return await Promise.race([working, givenUp]);
  } catch (error) {
    working.then(late, () => undefined);
    throw error;
  } finally {
    clearTimeout(timer);
    stop.removeEventListener("abort", onStop);
  }
}
