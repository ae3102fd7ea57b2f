// SPDX-License-Identifier: Apache-2.0
import { z } from "zod";
import { gapSchema, toolCallRecordSchema, type ToolCallRecord } from "../contract/observation.ts";
import { responseItemSchema, usageSchema, type ResponseItem, type Usage } from "../contract/response.ts";
import { statusSchema } from "../contract/result.ts";

const recordSchema = z.union([
  toolCallRecordSchema,
  z.object({ kind: z.literal("agent_invocation"), conversation: z.array(responseItemSchema) }),
  z.unknown().transform(() => null),
]);

/** What an export reads of a result; other fields are let through, for who verifies adds some. */
const resultSchema = z.object({
  activation_id: z.string(),
  run_id: z.string(),
  capture_key: z.string(),
  task_id: z.object({ taskset: z.string(), task_id: z.string() }),
  episode_id: z.object({ rollout_id: z.string(), attempt: z.int() }),
  status: statusSchema,
  incomplete_cause: z.string().nullable(),
  cause_class: z.string().nullable(),
  failure: z.object({ failure_kind: z.string(), cause_code: z.string(), failure_reason: z.string() }).nullable(),
  response: z.object({ model: z.string(), output: z.array(responseItemSchema) }).nullable(),
  observations: z.object({ records: z.array(recordSchema), gaps: z.array(gapSchema) }),
  /** Earlier records do not say the usage by attempt; the result's is then that of the last one. */
  attempts: z.array(z.object({ attempt: z.int(), started_at: z.string(), usage: usageSchema.nullish() })),
  artifacts: z.array(
    z.object({ path: z.string(), kind: z.string(), bytes: z.int(), sha256: z.string(), uri: z.string(), quarantined: z.boolean() }),
  ),
  usage: usageSchema.nullable(),
  worker: z.object({ version: z.string(), codex_version: z.string().nullable() }).nullable(),
  reward: z.number().nullable().optional(),
});

/** What is told of a rollout beside its conversation, in every format. */
export interface AboutRollout {
  activation_id: string;
  run_id: string;
  taskset: string;
  task_id: string;
  rollout_id: string;
  attempt: number;
  status: z.infer<typeof statusSchema>;
  incomplete_cause: string | null;
  cause_class: string | null;
  failure: { failure_kind: string; cause_code: string; failure_reason: string } | null;
  /** null = unscored. */
  reward: number | null;
  /** False: Codex's transcript is not there, or kept apart, so the conversation begins with the agent. */
  prompt_known: boolean;
  /** Ids of calls whose output is not whole here: only the first 64 KiB of it are. */
  shortened_outputs: string[];
  /** Files stay where they are; one that is quarantined holds a secret. */
  artifacts: { path: string; kind: string; bytes: number; sha256: string; uri: string; quarantined: boolean }[];
}

/** One rollout's conversation and what is known of it; redacted as the result is. */
export interface Trajectory {
  about: AboutRollout;
  prompt: string | null;
  items: ResponseItem[];
  model: string | null;
  codex_version: string | null;
  worker_version: string | null;
  capture_key: string;
  started_at: string | null;
  tool_calls: ToolCallRecord[];
  /** Of this attempt; what all of them took is in the result. */
  usage: Usage | null;
}

/**
 * The trajectory of a line of results.jsonl: the last attempt's. "unreadable": it is no result of this version; "no_conversation":
 * nothing was said. Pure.
 */
export function trajectoryOf(value: unknown, prompt: string | null): Trajectory | "unreadable" | "no_conversation" {
  const parsed = resultSchema.safeParse(value);
  if (!parsed.success) return "unreadable";
  const result = parsed.data;
  const { records, gaps } = result.observations;
  const conversation = records.find((record) => record?.kind === "agent_invocation")?.conversation;
  const items = result.response?.output ?? conversation ?? [];
  if (items.length === 0) return "no_conversation";
  const made = result.attempts.find(({ attempt }) => attempt === result.episode_id.attempt);
  const { activation_id, run_id, task_id, episode_id, status, incomplete_cause, cause_class, failure, artifacts } = result;
  return {
    about: {
      activation_id,
      run_id,
      ...task_id,
      ...episode_id,
      status,
      incomplete_cause,
      cause_class,
      failure,
      reward: result.reward ?? null,
      prompt_known: prompt !== null,
      shortened_outputs: gaps.flatMap(({ code, detail }) => (code === "tool_output_shortened" ? (callIdIn(detail ?? "") ?? []) : [])),
      artifacts,
    },
    prompt,
    items,
    model: result.response?.model ?? null,
    codex_version: result.worker?.codex_version ?? null,
    worker_version: result.worker?.version ?? null,
    capture_key: result.capture_key,
    started_at: made?.started_at ?? null,
    tool_calls: records.filter((record) => record?.kind === "tool_call"),
    usage: made?.usage === undefined ? result.usage : made.usage,
  };
}

function callIdIn(detail: string): string | null {
  try {
    const { tool_call_id } = JSON.parse(detail) as { tool_call_id?: unknown };
    return typeof tool_call_id === "string" ? tool_call_id : null;
  } catch {
    return null;
  }
}
