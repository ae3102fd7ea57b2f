// SPDX-License-Identifier: Apache-2.0
import { z } from "zod";
import { countSessions, type SessionCounts } from "../contract/session-usage.ts";

/** As in the contract, but lenient: no number is worth losing a result for. */
const usageSchema = z.object({
  input_tokens: z.number(),
  output_tokens: z.number(),
  total_tokens: z.number(),
  cached_input_tokens: z.number().nullable(),
  reasoning_output_tokens: z.number().nullable(),
  /** Earlier records do not say. */
  cache_write_input_tokens: z.number().nullable().catch(null),
});

const attemptSchema = z.object({
  attempt: z.number(),
  failure: z.object({ failure_kind: z.string() }).nullish().catch(null),
  /** Earlier records do not say; like the threads. */
  usage: usageSchema.nullable().catch(null),
  evidence: z
    .object({ turn_started: z.boolean(), threads: z.array(z.object({ open_model_calls: z.number() })).catch([]) })
    .nullable()
    .catch(null),
  observations: z.object({ gaps: z.array(z.object({ code: z.string() })) }).catch({ gaps: [] }),
});

/**
 * The few facts of a result that a batch decides and counts by. Results are large (responses, observations); only these
 * are held for all of them.
 */
const factsSchema = z.object({
  activation_id: z.string(),
  generation: z.number(),
  task_id: z.object({ task_id: z.string() }),
  status: z.enum(["completed", "incomplete", "failed", "refused", "cancelled"]),
  cause_class: z.string().nullable(),
  incomplete_cause: z.string().nullable(),
  failure: z.object({ failure_kind: z.string(), cause_code: z.string() }).nullable(),
  evidence: z
    .object({
      turn_started: z.boolean(),
      tools_called: z.record(z.string(), z.number()),
      /** Earlier records do not say. */
      required_tools: z.array(z.string()).catch([]),
    })
    .nullable(),
  /** Of all attempts together. */
  usage: usageSchema.nullable(),
  timing: z.object({ run_ms: z.number() }).nullable(),
  attempts: z.array(attemptSchema),
  worker: z.object({}).nullable(),
  /** Of a run with a resources server. */
  rollout: z.object({ verified: z.boolean(), verifications: z.number() }).optional(),
  observations: z.object({ gaps: z.array(z.object({ code: z.string() })) }),
  /** Put there by whoever verified it; null = unscored. */
  reward: z.number().nullable().catch(null),
});
export type ResultFacts = Omit<z.infer<typeof factsSchema>, "attempts" | "observations" | "worker"> & {
  attempts: number;
  /** How much of what its attempts took is told. */
  sessions: SessionCounts;
  /** A row that could not be run: recorded by the batch itself, never queued. */
  refused_row: boolean;
  startup_failed: boolean;
};

/** Facts of a result, or of a line read back; null when it is none. */
export function factsOf(result: unknown): ResultFacts | null {
  const parsed = factsSchema.safeParse(result);
  if (!parsed.success) return null;
  const { attempts, observations, worker, ...facts } = parsed.data;
  return {
    ...facts,
    attempts: attempts.length,
    sessions: countSessions(attempts, facts.usage),
    refused_row: facts.status === "refused" && worker === null,
    startup_failed: observations.gaps.some((gap) => gap.code === "agent_startup_failed"),
  };
}
