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

/** What all entries of a session share. */
export interface McpShared {
  /** Undefined = Codex's own default (startup 30, tool 300 in 0.144.4). */
  startupSeconds: number | undefined;
  toolSeconds: number | undefined;
  /** W3C, sent along to servers over HTTP, unless the grant has such a header itself; absent: nobody traces. */
  traceparent?: string | undefined;
}

/** The one builder of these entries. Pure; keys that would say nothing are left out. */
export function mcpServerEntry(grant: McpGrant, { startupSeconds, toolSeconds, traceparent }: McpShared): McpServerEntry {
  return {
    ...connectionKeys(grant.connection, traceparent),
    ...(grant.required ? { required: true } : {}),
    ...(startupSeconds === undefined ? {} : { startup_timeout_sec: startupSeconds }),
    ...(toolSeconds === undefined ? {} : { tool_timeout_sec: toolSeconds }),
  };
}

function connectionKeys(connection: McpGrant["connection"], traceparent: string | undefined): McpServerEntry {
  if (connection.transport === "streamable_http") {
    const { url } = connection;
    const hasOwn = Object.keys(connection.headers).some((name) => name.toLowerCase() === "traceparent");
    const headers = traceparent === undefined || hasOwn ? connection.headers : { ...connection.headers, traceparent };
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
