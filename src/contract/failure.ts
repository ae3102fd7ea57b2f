// SPDX-License-Identifier: Apache-2.0
import { z } from "zod";

/** Upstream's failure vocabulary, plus what Rollcall's own stages add nothing to. Kinds never imply a retry. */
export const failureKindSchema = z.enum([
  "transport_unreachable",
  "transport_peer_drop",
  "transport_timeout",
  "transport_local_resource",
  "agent_run_error",
  "agent_request_failed",
  "agent_timeout",
  "agent_command_not_allowed",
  "environment_server_failed",
  "protocol_violation",
  "judge_failed",
  "judge_unparseable",
  "verifier_error",
  "provider_unavailable",
  "provider_quota_exhausted",
  "provider_oom_killed",
  "session_lost",
  "session_expired",
  "session_release_failed",
  "cancelled",
  "kill_shaped",
  "shutdown",
  "persistence_failed",
  "cohort_incomplete",
]);
export type FailureKind = z.infer<typeof failureKindSchema>;

const failureStageSchema = z.enum(["admission", "seed", "agent", "verification", "cleanup"]);

/** Longest failure_reason, in characters; also the longest kept end of stderr. */
export const MAX_REASON_CHARACTERS = 2_000;

export const failureSchema = z.strictObject({
  failure_kind: failureKindSchema,
  /** The machine-readable cause: a refusal code, or one of {@link CAUSE_CODES}. */
  cause_code: z.string().regex(/^[a-z][a-z0-9_]*$/),
  /** Tool servers the cause names, when it is known. */
  server_names: z.array(z.string()),
  stage: failureStageSchema,
  /** Redacted, for people. */
  failure_reason: z.string().max(MAX_REASON_CHARACTERS),
  /** True: the same activation would fail again; it is not retried. */
  terminal: z.boolean(),
  /** HTTP class a caller over HTTP sees. */
  status_code: z.int().min(400).max(599),
});
export type Failure = z.infer<typeof failureSchema>;

/** Causes outside refusals, in the words of the result. */
export const CAUSE_CODES = [
  "mcp_server_unreachable",
  "mcp_server_auth",
  "mcp_server_protocol",
  "mcp_startup_timeout",
  "mcp_tools_missing",
  "config_invalid",
  "binary_missing",
  "model_key_missing",
  "key_origin_not_allowed",
  "sandbox_failed",
  "disk_full",
  "turn_failed",
  "stream_lost",
  "exit_code",
  "killed_by_signal",
  "out_of_memory",
  "rate_limited",
  "quota_exhausted",
  "model_not_found",
  "model_key_refused",
  "model_tool_refused",
  "session_lost",
  "cancelled",
  "codex_version_mismatch",
  "secret_key_missing",
  "no_worker",
  "shutdown",
  "lock_lost",
  "resources_seed_failed",
  "resources_metadata_missing",
  "resources_sandbox_access",
  "verification_failed",
  "unknown",
] as const;
export type CauseCode = (typeof CAUSE_CODES)[number];

/** Of several reasons why servers kept a session from starting, the one that is told: what makes another attempt pointless comes first. */
export function gravestCause(causes: readonly CauseCode[]): CauseCode {
  return GRAVEST_FIRST.find((code) => causes.includes(code)) ?? "unknown";
}

const GRAVEST_FIRST: readonly CauseCode[] = [
  "config_invalid",
  "mcp_server_auth",
  "mcp_startup_timeout",
  "mcp_server_unreachable",
  "mcp_server_protocol",
  "mcp_tools_missing",
];
