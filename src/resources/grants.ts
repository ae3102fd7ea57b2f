// SPDX-License-Identifier: Apache-2.0
import { isUsableServerName, mcpGrantSchema, type McpGrant } from "../contract/grant.ts";
import { grantRefusals } from "../contract/rules/grants.ts";
import type { ResourcesServer } from "./server.ts";
import type { SeedAnswer } from "./wire.ts";

/**
 * The grant by which a session calls the tools of its resources server; a string says why there can be none, for good. The same
 * for both protocols, and required in both: a session never runs without the tools that it is scored by. Pure.
 */
export function grantOf({ url, name, protocol }: ResourcesServer, answer: SeedAnswer): McpGrant | string {
  const tools = protocol === "session" ? (answer.resources_tools ?? answer.mcp) : (answer.mcp ?? answer.resources_tools);
  if (tools == null)
    return "its seed answer names no MCP server, and the session is to have its tools over MCP (resources.tool_transports)";
  if (tools.transport !== "http")
    return `its MCP server has a transport that is not supported: ${JSON.stringify(tools.transport.slice(0, 40))}; expected http`;
  const serverName = tools.server_name ?? name;
  if (!isUsableServerName(serverName))
    return `its MCP server is called ${JSON.stringify(serverName.slice(0, 80))}, which Codex cannot use: expected [A-Za-z0-9_-]+`;
  const target = `${url}/${tools.url_path.replace(/^\/+/, "")}`;
  if (!URL.canParse(target) || new URL(target).origin !== new URL(url).origin)
    return "its MCP path leads elsewhere than to the server itself";
  const grant = mcpGrantSchema.safeParse({
    type: "mcp",
    name: serverName,
    required: true,
    connection: { transport: "streamable_http", url: target, headers: tools.headers },
  });
  if (!grant.success) return "its MCP metadata make no grant that could be used";
  const [refusal] = grantRefusals([grant.data]);
  return refusal === undefined ? grant.data : `its MCP metadata make no grant that could be used: ${refusal.message}`;
}
