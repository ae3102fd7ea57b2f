// SPDX-License-Identifier: Apache-2.0
import { ApiProblem } from "./problem.ts";

/** Bounds how many requests of this process wait for something at once. */
export interface WaitingRoom {
  /** Takes a place, which the answer gives back (once; more does nothing). Throws ApiProblem 503 when all are taken. */
  enter(): () => void;
}

export function waitingRoom(most: number): WaitingRoom {
  let waiting = 0;
  return {
    enter() {
      if (waiting >= most) {
        throw new ApiProblem(503, "too_many_waiting", `${most} requests wait here already (api.max_waiting)`, {
          headers: { "retry-after": "5" },
        });
      }
      waiting += 1;
      let left = false;
      return () => {
        if (!left) waiting -= 1;
        left = true;
      };
    },
  };
}
