// SPDX-License-Identifier: Apache-2.0
import { z } from "zod";
import { responseItemSchema } from "./response.ts";

/**
 * What could not be observed, or was left out, and why. One closed list. Upstream's runtime_info_unavailable has no place
 * here: which worker ran a session is its own knowledge. Reserved, and not recorded yet: sandbox_reaped, egress_refused.
 */
export const gapCodeSchema = z.enum([
  "model_call_join_key_unavailable",
  "subagent_hierarchy_unavailable",
  "compaction_observations_unavailable",
  "cached_token_usage_unavailable",
  "reasoning_token_usage_unavailable",
  "partial_model_usage_unavailable",
  "model_metadata_fallback",
  "compaction_accuracy_advisory",
  "worker_exit_code_unavailable",
  "agent_activation_interrupted",
  "agent_transcript_unavailable",
  "tool_start_unavailable",
  "mcp_server_skipped",
  "agent_startup_failed",
  "harness_not_run",
  "agent_artifact_record_unparseable",
  "tool_outcome_unavailable",
  "agent_artifact_unavailable",
  "tool_grant_skipped",
  "mcp_server_unavailable",
  "mcp_server_state_unknown",
  "mcp_tool_names_altered",
  "stdout_lines_unparsed",
  "stdout_truncated",
  "artifact_skipped",
  "artifact_quarantined",
  "submission_late",
  "transcript_disagrees",
  "tool_output_shortened",
  "codex_version_unprofiled",
  "project_instructions_ignored",
  "mcp_session_lost",
  "required_tool_not_offered",
  "required_tool_refused",
  "model_answer_empty",
  "model_call_outcome_unknown",
  "model_calls_unlisted",
  "sandbox_reaped",
  "egress_refused",
]);
export type GapCode = z.infer<typeof gapCodeSchema>;

export const gapSchema = z.strictObject({
  code: gapCodeSchema,
  invocation_id: z.string().optional(),
  /** Redacted text; for codes with several facts (stdout_truncated, artifact_skipped ...) a JSON object as text. */
  detail: z.string().optional(),
});
export type ObservationGap = z.infer<typeof gapSchema>;

/** ISO 8601, UTC, milliseconds. */
const instant = z.iso.datetime();
const durationMs = z.number().min(0).nullable();

const agentInvocationSchema = z.strictObject({
  kind: z.literal("agent_invocation"),
  /** The capture key of the attempt; unique in a bundle. */
  invocation_id: z.string(),
  parent_invocation_id: z.string().optional(),
  spawned_by_tool_call_id: z.string().optional(),
  status: z.enum(["completed", "failed", "incomplete", "unknown"]),
  duration_ms: durationMs,
  /** The failure's cause_code; "required_tool_not_called" for a session that otherwise completed. */
  error_type: z.string().nullable(),
  model_calls: z.array(
    z.strictObject({
      model_call_id: z.string().optional(),
      model_ref: z.string().optional(),
      response_id: z.string().optional(),
    }),
  ),
  conversation: z.array(responseItemSchema),
});

export const toolCallRecordSchema = z.strictObject({
  kind: z.literal("tool_call"),
  invocation_id: z.string(),
  tool_call_id: z.string(),
  sandbox_id: z.string().optional(),
  /** An MCP call is named by its tool, e.g. "finish". */
  tool_name: z.string(),
  server_name: z.string().optional(),
  started_at: instant.nullable(),
  completed_at: instant.nullable(),
  duration_ms: durationMs,
  timing_source: z.enum(["executor", "artifact", "harness"]),
  status: z.enum(["completed", "failed", "timeout", "cancelled", "incomplete", "unknown"]),
  error_type: z.string().nullable(),
});
export type ToolCallRecord = z.infer<typeof toolCallRecordSchema>;

const sandboxRecordSchema = z.strictObject({
  kind: z.literal("sandbox"),
  role: z.enum(["agent", "verifier", "environment"]),
  provider: z.string(),
  outcome: z.enum(["completed", "failed", "timeout", "oom", "sandbox_error", "cancelled", "unknown"]),
  exit_code: z.int().nullable(),
  signal: z.string().nullable(),
  wall_ms: durationMs,
  cpu_ms: durationMs,
  peak_memory_bytes: z.number().nullable(),
});

const contextCompactionSchema = z.strictObject({
  kind: z.literal("context_compaction"),
  invocation_id: z.string(),
  at: instant.nullable(),
});

const observationRecordSchema = z.discriminatedUnion("kind", [
  agentInvocationSchema,
  toolCallRecordSchema,
  contextCompactionSchema,
  sandboxRecordSchema,
]);
export type ObservationRecord = z.infer<typeof observationRecordSchema>;

export const observationBundleSchema = z.strictObject({
  source: z.literal("codex"),
  records: z.array(observationRecordSchema),
  gaps: z.array(gapSchema),
});
export type ObservationBundle = z.infer<typeof observationBundleSchema>;
