// SPDX-License-Identifier: Apache-2.0
import { ApiProblem } from "./problem.ts";

/** Bounds how many requests of this process wait for something at once. */
export interface WaitingRoom {
  /** Takes a place for as long as the request is not given up. Throws ApiProblem 503 when all are taken. */
  enter(request: AbortSignal): Place;
}

interface Place {
  /** Aborted when the request is given up, or the server stops. */
  signal: AbortSignal;
  /** Gives the place back (once; more does nothing). */
  leave: () => void;
}

/**
 * All places hang on `stopping` by one listener. Not AbortSignal.any: Node 20 keeps some 60 bytes of each call in a signal that
 * lives as long as the process.
 */
export function waitingRoom(most: number, stopping: AbortSignal): WaitingRoom {
  const waiting = new Set<AbortController>();
  stopping.addEventListener("abort", () => {
    for (const place of waiting) place.abort();
  });
  return {
    enter(request) {
      if (waiting.size >= most) {
        throw new ApiProblem(503, "too_many_waiting", `${most} requests wait here already (api.max_waiting)`, {
          headers: { "retry-after": "5" },
        });
      }
      const place = new AbortController();
      waiting.add(place);
      const giveUp = (): void => place.abort();
      request.addEventListener("abort", giveUp, { once: true });
      if (request.aborted || stopping.aborted) place.abort();
      return {
        signal: place.signal,
        leave() {
          waiting.delete(place);
          request.removeEventListener("abort", giveUp);
        },
      };
    },
  };
}
