// SPDX-License-Identifier: Apache-2.0
import type { StateReply } from "../../../src/api/messages.ts";

/** Where it is, in one word: of a rollout that its resources server has, what that does. Pure. */
export function placeOf({ state, rollout }: StateReply): string {
  return rollout === undefined || rollout.state === "waiting" || rollout.state === "activation" || rollout.state === "ended"
    ? state
    : rollout.state;
}

/** Somebody works on it. Pure. */
export function isAtWork({ worker_id, state }: StateReply): boolean {
  return worker_id !== null || state === "committing";
}
