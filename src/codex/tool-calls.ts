// SPDX-License-Identifier: Apache-2.0
import type { ToolCallRecord } from "../contract/observation.ts";
import type { ToolUse } from "./items.ts";

export interface ToolCallTimes {
  invocationId: string;
  id: string;
  /** Receipt times in Unix seconds; null = that event never came. */
  startedAt: number | null;
  completedAt: number | null;
}

/** One tool call as it is observed. Times are those of receipt, so a clock set back meanwhile must not make them negative. */
export function toolCallRecord(
  use: Pick<ToolUse, "toolName" | "serverName" | "failed" | "errorType">,
  { invocationId, id, startedAt, completedAt }: ToolCallTimes,
): ToolCallRecord {
  const ended = completedAt === null || startedAt === null ? completedAt : Math.max(startedAt, completedAt);
  return {
    kind: "tool_call",
    invocation_id: invocationId,
    tool_call_id: id,
    tool_name: use.toolName,
    ...(use.serverName === null ? {} : { server_name: use.serverName }),
    started_at: instant(startedAt),
    completed_at: instant(ended),
    duration_ms: startedAt === null || ended === null ? null : Math.round((ended - startedAt) * 1000),
    timing_source: "artifact",
    status: ended === null ? "incomplete" : statusOf(use),
    error_type: use.errorType,
  };
}

/** A timed-out call failed for the model only: its server goes on with it (seen in 0.144.4 and 0.171.0). */
function statusOf({ failed, errorType }: Pick<ToolUse, "failed" | "errorType">): "completed" | "failed" | "timeout" {
  if (!failed) return "completed";
  return errorType === "timeout" ? "timeout" : "failed";
}

function instant(unixSeconds: number | null): string | null {
  return unixSeconds === null ? null : new Date(unixSeconds * 1000).toISOString();
}
