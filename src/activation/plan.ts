// SPDX-License-Identifier: Apache-2.0
import type { McpServerEntry, McpShared } from "../codex/mcp-servers.ts";
import { mcpServerEntry } from "../codex/mcp-servers.ts";
import type { CodexProfile } from "../codex/profile.ts";
import { plainNamespace } from "../codex/tool-namespaces.ts";
import { isUsableServerName, type ToolGrant } from "../contract/grant.ts";
import type { ObservationGap } from "../contract/observation.ts";
import { RollcallError } from "../errors.ts";

export interface ServerPlan {
  /** What config.toml's mcp_servers holds. */
  servers: Record<string, McpServerEntry>;
  /** What was left out, and what Codex will alter. */
  gaps: ObservationGap[];
}

/**
 * Grants to servers: optional grants that Codex cannot use are left out and recorded. Pure. Throws RollcallError
 * "config_invalid" for a required one: admission refuses those, and the model must never run without it.
 */
export function planServers(grants: readonly ToolGrant[], shared: McpShared, profile: CodexProfile): ServerPlan {
  const plan: ServerPlan = { servers: {}, gaps: [] };
  for (const grant of grants) {
    const usable = grant.type === "mcp" && isUsableServerName(grant.name);
    if (usable) {
      plan.servers[grant.name] = mcpServerEntry(grant, shared);
    } else if (grant.required) {
      throw new RollcallError("config_invalid", `The required grant ${JSON.stringify(grant.name)} is not one that Codex can use.`);
    } else {
      plan.gaps.push({ code: grant.type === "mcp" ? "mcp_server_skipped" : "tool_grant_skipped", detail: grant.name });
    }
  }
  plan.gaps.push(...alteredNames(Object.keys(plan.servers), profile));
  return plan;
}

/**
 * Names that the model sees otherwise: too long for this version, or one with another's once "-" becomes "_" and "mcp__" stands
 * before it (then Codex adds a hash; 0.144.4 and 0.171.0 alike).
 */
function alteredNames(names: readonly string[], { longestServerName }: CodexProfile): ObservationGap[] {
  return names.flatMap((name): ObservationGap[] => {
    const twin = names.find((other) => other !== name && plainNamespace(other) === plainNamespace(name));
    if (name.length <= longestServerName && twin === undefined) return [];
    return [
      { code: "mcp_tool_names_altered", detail: JSON.stringify({ server_name: name, ...(twin === undefined ? {} : { same_as: twin }) }) },
    ];
  });
}
