// SPDX-License-Identifier: Apache-2.0
import { redisTrouble } from "../redis/trouble.ts";
import { setTimeout as delay } from "node:timers/promises";
import type { ActivationResult } from "../contract/result.ts";
import { isEnd, progressAfter } from "../queue/progress.ts";
import { keys } from "../queue/names.ts";
import type { StreamWatch } from "../queue/stream-watch.ts";
import type { Queues } from "../queue/queues.ts";
import { asRolloutResult } from "../resources/documents.ts";
import { findKnown, type KnownActivation } from "../resources/find-rollouts.ts";
import type { ApiPorts } from "./ports.ts";

/** Looked at again after this, even when nothing was told: against lost entries. */
const LOOK_MS = 30_000;
/** Between the news of an end and its record a few steps are left. */
const RECORDING_MS = 50;
const AGAIN_MS = 1_000;
const PAGE = 500;

/**
 * Waits until the activation has ended, and where it is a rollout's until that is over, for at most `waitMs`, or until aborted; answers how
 * it stands then. Sleeps on its progress: only an end in it, or time, makes it look. A Redis that goes away meanwhile is waited for.
 */
export async function awaitEnd(
  ports: { queues: Queues; watch: StreamWatch },
  activationId: string,
  { waitMs, signal }: { waitMs: number; signal: AbortSignal },
): Promise<KnownActivation> {
  const until = performance.now() + waitMs;
  const seen: Seen = { after: "0", told: false };
  let [found] = await findKnown(ports.queues, [activationId]);
  while (found!.state !== "ended" && found!.state !== "unknown" && performance.now() < until && !signal.aborted) {
    try {
      await news(ports, activationId, seen, { until: Math.min(until, performance.now() + (seen.told ? RECORDING_MS : LOOK_MS)), signal });
      [found] = await findKnown(ports.queues, [activationId]);
    } catch (error) {
      if (redisTrouble(error)?.kind !== "away" || performance.now() + AGAIN_MS > until) throw error;
      await delay(AGAIN_MS, undefined, { signal }).catch(() => undefined);
    }
  }
  return found!;
}

/** What of the progress was read, and whether an end was in it. */
interface Seen {
  after: string;
  told: boolean;
}

/** Until the progress tells of an end, or the time is over. */
async function news(
  { queues, watch }: { queues: Queues; watch: StreamWatch },
  activationId: string,
  seen: Seen,
  { until, signal }: { until: number; signal: AbortSignal },
): Promise<void> {
  while (performance.now() < until && !signal.aborted) {
    const page = await progressAfter(queues.redis, activationId, { after: seen.after, count: PAGE });
    seen.after = page.at(-1)?.id ?? seen.after;
    if (page.some(isEnd)) seen.told = true;
    if (page.some(isEnd)) return;
    const timeoutMs = Math.max(1, until - performance.now());
    if (page.length === 0) await watch.changed(keys.progress(activationId), seen.after, { signal, timeoutMs });
  }
}

/**
 * The result of one generation as it lies in the store; null when there is none. `rollout`: of one that may be a rollout's, the whole
 * rollout's; "open" there is none before that is over.
 */
export async function storedResult(
  { store }: Pick<ApiPorts, "store">,
  activationId: string,
  generation: number,
  rollout: "none" | "open" | "over",
): Promise<string | null> {
  const text = (await store.readCommitted(activationId, generation))?.text ?? null;
  if (text === null || rollout === "none") return text;
  const whole = await asRolloutResult(store, JSON.parse(text) as ActivationResult);
  if (whole !== null) return JSON.stringify(whole);
  return rollout === "open" ? null : text;
}

/** The committed result of the latest generation, also of what Redis forgot; null when there is none, or the id is none of ours. */
export async function knownInStore({ store }: Pick<ApiPorts, "store">, id: string): Promise<ActivationResult | null> {
  return store.readCommit(id).catch((error: unknown) => {
    if (error instanceof Error && "code" in error && error.code === "bad_path") return null; // no id of ours
    throw error;
  });
}
