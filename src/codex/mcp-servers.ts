// SPDX-License-Identifier: Apache-2.0
import type { McpGrant } from "../contract/grant.ts";

/** One `mcp_servers.<name>` table of Codex's config.toml, in Codex's own spelling. */
export type McpServerEntry = (
  | { url: string; http_headers?: Record<string, string> }
  | { command: string; args?: string[]; env?: Record<string, string>; cwd?: string }
) & {
  required?: true;
  startup_timeout_sec?: number;
  tool_timeout_sec?: number;
};

/** In seconds; undefined = Codex's own default (startup 30, tool 300 in 0.144.4). */
export interface McpTimeouts {
  startupSeconds: number | undefined;
  toolSeconds: number | undefined;
}

/** The one builder of these entries. Pure; keys that would say nothing are left out. */
export function mcpServerEntry(grant: McpGrant, timeouts: McpTimeouts): McpServerEntry {
  return {
    ...connectionKeys(grant.connection),
    ...(grant.required ? { required: true } : {}),
    ...(timeouts.startupSeconds === undefined ? {} : { startup_timeout_sec: timeouts.startupSeconds }),
    ...(timeouts.toolSeconds === undefined ? {} : { tool_timeout_sec: timeouts.toolSeconds }),
  };
}

function connectionKeys(connection: McpGrant["connection"]): McpServerEntry {
  if (connection.transport === "streamable_http") {
    const { url, headers } = connection;
    return { url, ...(Object.keys(headers).length === 0 ? {} : { http_headers: { ...headers } }) };
  }
  const { command, args, env, cwd } = connection;
  return {
    command,
    ...(args.length === 0 ? {} : { args: [...args] }),
    ...(Object.keys(env).length === 0 ? {} : { env: { ...env } }),
    ...(cwd === null ? {} : { cwd }),
  };
}
