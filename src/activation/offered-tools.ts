// SPDX-License-Identifier: Apache-2.0
import { goesThroughSocks } from "../preflight/proxy.ts";
import { isUsableServerName, type McpGrant, type ToolGrant } from "../contract/grant.ts";

/** The tools of each server that was looked at, by grant name; one that is not usable and was left out offers none. */
export type OfferedTools = ReadonlyMap<string, readonly string[]>;

/** What a look after the session may take; it happens only where something is to be explained. */
const LOOK_SECONDS = 5;

/** Codex's own; a server need not offer them. */
const OF_CODEX = new Set(["exec_command", "write_stdin", "apply_patch", "update_plan", "todo_list", "web_search", "view_image"]);

/** Of these tools, those that nobody offered; none, as long as the tools of one server are not known. Pure. */
export function toolsNotOffered(tools: readonly string[], grants: readonly ToolGrant[], offered: OfferedTools): string[] {
  if (unknownServers(grants, offered).length > 0) return [];
  const all = new Set([...offered.values()].flat());
  return tools.filter((tool) => !all.has(tool) && !OF_CODEX.has(tool));
}

/**
 * Completes what is known: asks the servers over HTTP that nobody looked at for their tools, once, when a session came to an end that
 * their tools may explain. A look before each session would cost all those that need none. Not where the grant says `preflight: false`,
 * nor programs, which would run again among the deliverables. Never rejects: what cannot be found out stays unknown.
 */
export async function lookAfterwards(
  grants: readonly ToolGrant[],
  offered: OfferedTools,
  env: Readonly<Record<string, string>>,
): Promise<OfferedTools> {
  const unknown = unknownServers(grants, offered);
  if (unknown.length === 0 || !unknown.every((grant) => mayBeAsked(grant, env))) return offered;
  const { checkHttp } = await import("../preflight/check-http.ts"); // with the MCP SDK
  const bound = { seconds: LOOK_SECONDS, signal: new AbortController().signal };
  const found = await Promise.all(
    unknown.map(async ({ name, connection }) => {
      const check = connection.transport === "streamable_http" ? await checkHttp(connection, env, bound) : null;
      return check !== null && "tools" in check ? [[name, check.tools] as const] : [];
    }),
  );
  return new Map([...offered, ...found.flat()]);
}

function unknownServers(grants: readonly ToolGrant[], offered: OfferedTools): McpGrant[] {
  return grants.flatMap((grant) => (grant.type === "mcp" && isUsableServerName(grant.name) && !offered.has(grant.name) ? [grant] : []));
}

function mayBeAsked({ connection, preflight }: McpGrant, env: Readonly<Record<string, string>>): boolean {
  return connection.transport === "streamable_http" && preflight !== false && !goesThroughSocks(connection.url, env);
}
