// SPDX-License-Identifier: Apache-2.0
import { z } from "@hono/zod-openapi";
import type { ProgressEntry } from "../activation/ports.ts";
import { statusSchema } from "../contract/result.ts";
import { ACTIVATION_STATES, type FoundActivation } from "../queue/find-activation.ts";
import type { RolloutNow } from "../resources/find-rollouts.ts";
import { PHASES } from "../resources/record.ts";

const problemEntry = z.object({ code: z.string(), path: z.string(), message: z.string(), accepted: z.string() });

export const enqueueReply = z
  .object({
    activations: z.array(
      z.object({
        activation_id: z.string().nullable(),
        run_id: z.string().nullable(),
        outcome: z.enum(["added", "joined", "ended", "conflict", "refused"]),
        /** Of a conflict: what differs. */
        fields: z.array(z.string()).optional(),
        /** Of one that was added: what no live worker has; it waits for one. */
        no_worker_for: z.string().optional(),
        refusals: z.array(problemEntry).optional(),
        /** What is worth a word although it was taken. */
        warnings: z.array(z.string()).optional(),
      }),
    ),
  })
  .openapi("Enqueued");
export type EnqueueReply = z.infer<typeof enqueueReply>;

const counts = z.object({ turns: z.int(), tool_calls: z.int(), tokens: z.int().nullable() });
export const eventReply = z
  .object({
    at: z.string(),
    /** over: an attempt is; another may follow. ended: the activation has, as `note` says. */
    stage: z.enum(["starting", "running", "collecting", "over", "ended"]),
    attempt: z.int(),
    /** A tool's name, "message", a status. */
    note: z.string().optional(),
    counts: counts.optional(),
  })
  .openapi("Event");
export type EventReply = z.infer<typeof eventReply>;

/** Where a rollout is with its resources server. waiting: for a place there, or for its next attempt. activation: it is queued, or runs. */
const rolloutNow = z.object({
  state: z.enum([...PHASES, "ended"]),
  attempt: z.int(),
  /** Attempts that failed, and counted. */
  failed_attempts: z.int(),
  /** Tries of the verification, or of the close, that failed so far. */
  failed_tries: z.int(),
  /** Since when the server has been out of reach. */
  unreachable_since: z.string().nullable(),
  /** Of one that is over, as it was scored then; null: it was not. */
  reward: z.number().nullable(),
});

export const stateReply = z
  .object({
    activation_id: z.string(),
    run_id: z.string().nullable(),
    generation: z.int(),
    state: z.enum(ACTIVATION_STATES),
    status: statusSchema.nullable(),
    attempt: z.int().nullable(),
    charged: z.int(),
    worker_id: z.string().nullable(),
    due_at: z.string().nullable(),
    cancel: z.object({ by: z.string(), at: z.string(), reason: z.string() }).nullable(),
    /** Of one that waits: how many are before it, of all runs. Those that another gate holds back do not count. */
    position: z.int().nullable(),
    last_event: eventReply.nullable(),
    /** Since its last event. */
    idle_seconds: z.number().nullable(),
    /** Only of a rollout with a resources server, whose state all of this is: it has ended when the rollout is over. */
    rollout: rolloutNow.optional(),
  })
  .openapi("ActivationState");
export type StateReply = z.infer<typeof stateReply>;

export const cancelAnswer = z
  .object({
    activation_id: z.string(),
    run_id: z.string().nullable(),
    state: z.enum(ACTIVATION_STATES),
    outcome: z.enum(["done", "asked", "nothing", "impossible"]),
  })
  .openapi("CancelAnswer");
export type CancelReply = z.infer<typeof cancelAnswer>;

export const retryAnswer = z
  .object({
    activation_id: z.string(),
    state: z.enum(ACTIVATION_STATES),
    outcome: z.enum(["done", "asked", "nothing", "impossible"]),
    /** Ended, and not to be had again from here: its producer must send it again. */
    why: z.enum(["secrets_deleted", "job_removed"]).nullable(),
  })
  .openapi("RetryAnswer");
export type RetryReply = z.infer<typeof retryAnswer>;

/** Described by the JSON Schema of results, which is a component of the document. */
export const resultReply = z.unknown().openapi({ $ref: "#/components/schemas/Result" } as object);

/** Pure. */
export function eventView({ at, stage, attempt, note, counts: so_far }: ProgressEntry & { at: string }): EventReply {
  return {
    at,
    stage: stage === "ended" && note === undefined ? "over" : stage,
    attempt,
    ...(note === undefined ? {} : { note }),
    ...(so_far === undefined ? {} : { counts: so_far }),
  };
}

/** Pure. */
export function stateView(
  found: FoundActivation & { rollout?: RolloutNow | null },
  more: { last: (ProgressEntry & { at: string }) | null; idleMs: number | null; position: number | null },
): z.infer<typeof stateReply> {
  const { activation_id, run_id, generation, state, status, attempt, charged, worker_id, due_at, cancel, rollout } = found;
  return {
    activation_id,
    run_id,
    generation,
    state,
    status,
    attempt,
    charged,
    worker_id,
    due_at,
    cancel,
    position: more.position,
    last_event: more.last === null ? null : eventView(more.last),
    idle_seconds: more.idleMs === null ? null : more.idleMs / 1_000,
    ...(rollout == null ? {} : { rollout }),
  };
}
