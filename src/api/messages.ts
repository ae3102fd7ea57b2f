// SPDX-License-Identifier: Apache-2.0
import { z } from "@hono/zod-openapi";
import type { ProgressEntry } from "../activation/ports.ts";
import { statusSchema } from "../contract/result.ts";
import { ACTIVATION_STATES, type FoundActivation } from "../queue/find-activation.ts";

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
        refusals: z.array(problemEntry).optional(),
      }),
    ),
  })
  .openapi("Enqueued");
export type EnqueueReply = z.infer<typeof enqueueReply>;

const stage = z.enum(["starting", "running", "collecting", "ended"]);
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
    last_event: z.object({ at: z.string(), stage, attempt: z.int(), note: z.string().optional() }).nullable(),
  })
  .openapi("ActivationState");

export const cancelAnswer = z
  .object({
    activation_id: z.string(),
    run_id: z.string().nullable(),
    state: z.enum(ACTIVATION_STATES),
    outcome: z.enum(["done", "asked", "nothing", "impossible"]),
  })
  .openapi("CancelAnswer");

/** Pure. */
export function stateView(found: FoundActivation, last: (ProgressEntry & { at: string }) | null): z.infer<typeof stateReply> {
  const { activation_id, run_id, generation, state, status, attempt, charged, worker_id, due_at, cancel } = found;
  return { activation_id, run_id, generation, state, status, attempt, charged, worker_id, due_at, cancel, last_event: last };
}
