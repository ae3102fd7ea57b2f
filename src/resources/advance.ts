// SPDX-License-Identifier: Apache-2.0
import { activationStep } from "./activation-step.ts";
import { closeStep } from "./close-step.ts";
import { changeRollout, readRollout } from "./record.ts";
import { seedStep } from "./seed-step.ts";
import type { Move, Step, StepPorts } from "./step.ts";
import { verifyStep } from "./verify-step.ts";

/**
 * Does what a rollout needs next, step after step, until it has to wait: seed -> activation -> verify -> close, in this order
 * (environment servers of Gym do it in the same one). Answers for how many ms; null = nothing is to be done by this job any more.
 * Every step may be done again by whoever takes over from a killed process: calls are made under ids that follow from the
 * rollout's own, and what they brought is kept in the store before the record moves on. Throws what is no fault of the server's.
 */
export async function advance(ports: StepPorts, activationId: string, job: { id: string; signal: AbortSignal }): Promise<number | null> {
  for (;;) {
    job.signal.throwIfAborted();
    const kept = await readRollout(ports.queues, activationId);
    if (kept === null || kept.record.state === "ended") return null;
    const move = await take({ ...ports, kept, record: kept.record, jobId: job.id, signal: job.signal });
    if (move.kind === "rest") return null;
    if (move.kind === "wait" && move.record === undefined) return move.ms;
    // Where it has changed meanwhile, another process does the same step, or stood still in it: what is there now is looked at again.
    const written = await changeRollout(ports.queues, kept, move.record!);
    if (written && move.kind === "wait") return move.ms;
  }
}

function take(step: Step): Promise<Move> {
  const { state } = step.record;
  switch (state) {
    case "seed":
      return seedStep(step);
    case "activation":
      return activationStep(step);
    case "verify":
      return verifyStep(step);
    case "close":
      return closeStep(step);
    case "ended":
      return Promise.resolve({ kind: "rest" });
    default:
      return state satisfies never;
  }
}
