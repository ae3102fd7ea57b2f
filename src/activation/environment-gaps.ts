// SPDX-License-Identifier: Apache-2.0
import type { SessionFacts } from "../codex/session.ts";
import type { StartupCause } from "../codex/startup.ts";
import type { ObservationGap, ToolCallRecord } from "../contract/observation.ts";
import type { Outcome } from "./classify.ts";
import type { Stopped } from "./run-codex.ts";

/** The model server answered, and nothing was in it: no item, and no token was counted. Pure. */
export function isEmptyAnswer({ turnCompleted, items, eventsDropped, usage }: SessionFacts): boolean {
  return turnCompleted && items.length === 0 && eventsDropped === 0 && usage !== null && usage.total_tokens === 0;
}

/** Calls of these tools that their server answered with 401 or 403. Pure. */
export function refusedCalls({ toolCalls }: SessionFacts, tools: readonly string[]): ToolCallRecord[] {
  return toolCalls.filter((call) => call.error_type === "unauthorized" && tools.includes(call.tool_name));
}

/** What the environment of a session did not give, as far as the session tells. All of it is redacted. */
export interface SeenEnvironment {
  invocation_id: string;
  facts: SessionFacts;
  outcome: Outcome;
  stopped: Stopped;
  requiredToolsMissing: readonly string[];
  requiredToolsNotOffered: readonly string[];
  startup: StartupCause | null;
}

/** Pure. */
export function environmentGaps(seen: SeenEnvironment): ObservationGap[] {
  const { invocation_id, facts, outcome, stopped, requiredToolsMissing, requiredToolsNotOffered, startup } = seen;
  const gaps: ObservationGap[] = [];
  const add = (code: ObservationGap["code"], detail?: object): void => {
    gaps.push({ code, invocation_id, ...(detail === undefined ? {} : { detail: JSON.stringify(detail) }) });
  };
  for (const { name, cause } of startup?.servers ?? []) add("mcp_server_unavailable", { server_name: name, cause_code: cause });
  if (outcome.status !== "completed" && outcome.status !== "incomplete") return gaps;
  for (const tool of requiredToolsNotOffered) add("required_tool_not_offered", { tool });
  const refused = new Set(
    refusedCalls(facts, requiredToolsMissing).map(({ tool_name, server_name }) => `${tool_name}\n${server_name ?? ""}`),
  );
  for (const pair of refused) {
    const [tool, server_name] = pair.split("\n");
    add("required_tool_refused", { tool, server_name });
  }
  if (outcome.status === "completed" && isEmptyAnswer(facts)) add("model_answer_empty");
  if (stopped?.kind === "wall_clock" || stopped?.kind === "idle") {
    for (const { tool_name, server_name, status, tool_call_id } of facts.toolCalls) {
      if (server_name !== undefined && status === "incomplete") add("mcp_session_lost", { server_name, tool: tool_name, tool_call_id });
    }
  }
  return gaps;
}
