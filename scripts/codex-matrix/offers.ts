// SPDX-License-Identifier: Apache-2.0
import { OFFICE_TOOLS } from "../../examples/stand-ins/office-tool-list.ts";
import { forVersion, type ByVersion, type Kind, type Scenario } from "./scenario.ts";

/** Tools that Codex itself offers under our configuration, with a tool server granted: what a new version adds or drops is seen here. */
const OWN = [
  "exec_command",
  "list_mcp_resource_templates",
  "list_mcp_resources",
  "read_mcp_resource",
  "request_user_input",
  "view_image",
  "write_stdin",
];
const PLAN: ByVersion<readonly string[]> = { else: [], "0.144.4": ["update_plan"] };
/** A model that writes code keeps its own way for Codex' tools; only the granted ones are direct. */
const CODE: ByVersion<readonly string[]> = {
  else: ["exec", "wait", "request_user_input", "request_user_input_async", "send_message_to_user_async"],
  "0.144.4": ["exec", "wait", "request_user_input"],
};
const DIRECT: Record<Kind, ByVersion<readonly string[]>> = { unknown: OWN, plain: [...OWN, "apply_patch"], code: CODE };
/** As the model's own entry in the catalogue has it, without agents. */
const CATALOGUE: Record<Kind, ByVersion<readonly string[]>> = {
  unknown: OWN,
  plain: [...OWN, "apply_patch", "tool_search"],
  code: CODE,
};
const AGENTS = ["followup_task", "interrupt_agent", "list_agents", "send_message", "spawn_agent", "wait_agent"];

/** Everything that the model must be offered in its first request, sorted. null: not looked at. Pure. */
export function expectedOffer(scenario: Scenario, kind: Kind, version: string, granted: readonly string[]): string[] | null {
  if (granted.length === 0) return null;
  const { tools = "direct", subagents = "off" } = scenario.codex ?? {};
  const scripts = kind === "code";
  const own = [...forVersion((tools === "direct" ? DIRECT : CATALOGUE)[kind], version), ...(scripts ? [] : forVersion(PLAN, version))];
  const offered =
    tools === "direct" || kind === "unknown" ? granted.flatMap((name) => OFFICE_TOOLS.map((tool) => `mcp__${name}.${tool.name}`)) : [];
  // 0.144.4 cannot take them from a model whose catalogue names them; there spawning is refused.
  const agents = subagents === "on" || (scripts && version === "0.144.4") ? AGENTS.map((name) => `collaboration.${name}`) : [];
  return [...own, ...offered, ...agents].sort();
}
