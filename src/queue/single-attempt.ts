// SPDX-License-Identifier: Apache-2.0
import type { RunEnd } from "../activation/ports.ts";
import type { Failure } from "../contract/failure.ts";
import type { Attempt } from "../contract/result.ts";
import type { Disposal } from "./disposal.ts";
import { sessionLost } from "./end-without-run.ts";
import type { ActivationJobData } from "./jobs.ts";
import { keys } from "./names.ts";
import type { Queues } from "./queues.ts";

// Another attempt has another capture key. A producer that seeded one key, and counts attempts itself, must never see a second:
// what others are given back uncharged (a stopped worker, a busy model server, an internal fault) ends such an activation.

/** How the one attempt of a claimed job left, which must not begin again; null = it may begin. `saved`: its attempts in the store. */
export async function spentAttempt(queues: Queues, data: ActivationJobData, saved: readonly Attempt[]): Promise<Failure | null> {
  if (data.single_attempt !== true) return null;
  const begun = await queues.redis.hexists(keys.ledger(data.activation.activation_id), "next");
  if (begun === 0 && saved.length === 0) return null;
  return saved.at(-1)?.failure ?? sessionLost("its attempt ended without a record");
}

/** The same disposal, but for one that would let another attempt begin. Pure. */
export function withoutAnother(disposal: Disposal, end: RunEnd): Disposal {
  if (disposal.kind !== "delay" && disposal.kind !== "hand_back") return disposal;
  const failure = "attempt" in end ? end.attempt.failure : null;
  return { kind: "finish", end: { kind: "failed", failure: failure ?? sessionLost("its worker was stopped during the session") } };
}
