// SPDX-License-Identifier: Apache-2.0
import { setRunGate } from "./gate.ts";
import { keys } from "./names.ts";
import type { Queues } from "./queues.ts";

/** Who paused a run, when (ISO 8601) and why; by unknown, at "" where its gate was set without saying. */
export interface PauseMark {
  by: string;
  at: string;
  reason: string;
}

/** Field of the gate's hash, beside "paused". */
const FIELD = "pause";

/** Nothing of the run starts any more; what runs goes on. False: it was paused before, and that mark stays. */
export async function pauseRun(queues: Queues, runId: string, mark: PauseMark): Promise<boolean> {
  const first = await queues.redis.hsetnx(keys.gate(runId), FIELD, JSON.stringify(mark));
  await setRunGate(queues, runId, { paused: true });
  return first === 1;
}

/** Opens the run's gate, also where its breaker closed it; parked activations are woken, as many as its limit lets. False: it was open. */
export async function resumeRun(queues: Queues, runId: string): Promise<boolean> {
  const [paused, broken] = await queues.redis.hmget(keys.gate(runId), "paused", "breaker_until");
  await queues.redis.hdel(keys.gate(runId), FIELD);
  await setRunGate(queues, runId, { paused: false });
  return paused === "1" || broken != null;
}

/** null: the run is not paused. */
export async function readPause(queues: Queues, runId: string): Promise<PauseMark | null> {
  const [paused, text] = await queues.redis.hmget(keys.gate(runId), "paused", FIELD);
  if (paused !== "1") return null;
  return text == null ? { by: "unknown", at: "", reason: "" } : (JSON.parse(text) as PauseMark);
}
