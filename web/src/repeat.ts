// SPDX-License-Identifier: Apache-2.0
import { useEffect, useRef, useState } from "preact/hooks";

export interface Repeated {
  /** Of the last look; null: it was fine. */
  error: unknown;
  /** Looks again now. */
  again: () => void;
}

/** A look that took long is not repeated soon: at most this share of the time is spent looking. */
const REST = 4;

/**
 * Calls `look` now and then again, `everyMs` after it was done (as it says; null = not by itself), while the page can be seen. Starts
 * anew when `key` changes; an earlier look is aborted then.
 */
export function useRepeated(look: (signal: AbortSignal) => Promise<number | null>, key: string): Repeated {
  const [error, setError] = useState<unknown>(null);
  const [turn, setTurn] = useState(0);
  const latest = useRef(look);
  latest.current = look;
  useEffect(() => {
    const stop = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let next: number | null = 0;
    const run = async (): Promise<void> => {
      timer = undefined;
      if (document.hidden) return; // until it is seen again
      const since = performance.now();
      try {
        next = await latest.current(stop.signal);
        if (!stop.signal.aborted) setError(null);
      } catch (thrown) {
        if (stop.signal.aborted) return;
        next = 5_000;
        setError(thrown);
      }
      if (next !== null && !stop.signal.aborted) timer = setTimeout(() => void run(), Math.max(next, REST * (performance.now() - since)));
    };
    const seen = (): void => {
      if (!document.hidden && timer === undefined && next !== null) void run();
    };
    document.addEventListener("visibilitychange", seen);
    void run();
    return () => {
      stop.abort();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", seen);
    };
  }, [key, turn]);
  return { error, again: () => setTurn((before) => before + 1) };
}

/** The time in ms since 1970, anew every `everyMs` while `on`. */
export function useNow(on: boolean, everyMs = 1_000): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    if (!on) return undefined;
    const timer = setInterval(() => setNow(Date.now()), everyMs);
    return () => clearInterval(timer);
  }, [on, everyMs]);
  return now;
}
