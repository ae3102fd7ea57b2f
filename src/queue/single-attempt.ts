// SPDX-License-Identifier: Apache-2.0
import type { RunEnd } from "../activation/ports.ts";
import type { SessionActivation } from "../contract/activation.ts";
import type { Failure } from "../contract/failure.ts";
import type { Attempt } from "../contract/result.ts";
import type { Disposal } from "./disposal.ts";
import { sessionLost } from "./end-without-run.ts";
import { keys } from "./names.ts";
import type { Queues } from "./queues.ts";

// Another attempt has another capture key. A producer that seeded one key, and counts attempts itself, must never see a second:
// what others are given back uncharged (a stopped worker, a busy model server, an internal fault) ends such an activation.

/**
 * How the one attempt that an activation was seeded with left, which must not begin again; null = it may begin. Attempts of lower
 * numbers were other sessions of its producer. `saved`: its attempts in the store.
 */
export async function spentAttempt(
  queues: Queues,
  { activation_id, episode_id }: Pick<SessionActivation, "activation_id" | "episode_id">,
  saved: readonly Attempt[],
): Promise<Failure | null> {
  const next = Number((await queues.redis.hget(keys.ledger(activation_id), "next")) ?? 0);
  const own = saved.filter(({ attempt }) => attempt >= episode_id.attempt);
  if (next <= episode_id.attempt && own.length === 0) return null;
  return own.at(-1)?.failure ?? sessionLost("its attempt ended without a record");
}

/** The same disposal, but for one that would let another attempt begin. Pure. */
export function withoutAnother(disposal: Disposal, end: RunEnd): Disposal {
  if (disposal.kind !== "delay" && disposal.kind !== "hand_back") return disposal;
  const failure = "attempt" in end ? end.attempt.failure : null;
  return { kind: "finish", end: { kind: "failed", failure: failure ?? sessionLost("its worker was stopped during the session") } };
}
