// SPDX-License-Identifier: Apache-2.0
import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import {
  CallToolRequestSchema,
  ErrorCode,
  ListToolsRequestSchema,
  McpError,
  type CallToolResult,
} from "@modelcontextprotocol/sdk/types.js";
import { readBody, serveOnLoopback } from "./loopback.ts";
import { OFFICE_TOOLS, runOfficeTool } from "./office-tool-list.ts";
import { SESSION_TOKEN_HEADER, sessionTokens, type SessionTokens } from "./session-tokens.ts";

export { startBrokenServer } from "./broken-server.ts";

const MAX_BODY_BYTES = 4 * 1024 * 1024;
const MAX_CALLS = 10_000;

export interface OfficeToolsOptions {
  /** Default 0: a free port. */
  port?: number;
  /** Signs the session tokens; default a random one. */
  secret?: string;
  /** How replies are framed: both are allowed by MCP, and Codex 0.144.4 treats them differently after a time-out. Default "json". */
  replies?: "json" | "sse";
  /** Milliseconds that a call takes. Default none. */
  delayMs?: (tool: string) => number;
}

export interface OfficeCall {
  /** Whose token came with it; null for a call that was refused for want of a good one. */
  session_id: string | null;
  tool: string;
  args: Record<string, unknown>;
  /** Milliseconds since the epoch. */
  started_at: number;
  ended_at: number;
  outcome: "ok" | "tool_error" | "refused";
  /** Codex's thread (`_meta.threadId`), by which a call is joined to its session's events. */
  thread_id: string | null;
}

export interface OfficeTools {
  /** `http://127.0.0.1:<port>/mcp`. */
  readonly url: string;
  readonly mintToken: SessionTokens["mint"];
  /** The newest calls, at most 10,000, the oldest first; each is there once it has ended. */
  readonly calls: readonly OfficeCall[];
  close(): Promise<void>;
}

/**
 * A real MCP server (streamable HTTP, stateless) with the tools of an office task: finish, abandon_task_finish,
 * web_search and fetch_web_page. Listing needs no token, calling does. `finish` cannot see the sandbox, so it believes
 * its paths. The caller closes it.
 */
export async function startOfficeTools(options: OfficeToolsOptions = {}): Promise<OfficeTools> {
  const { serve, ...tools } = officeTools(options);
  const server = await serveOnLoopback(serve, options.port);
  return { ...tools, url: `${server.origin}/mcp`, close: () => server.close() };
}

/** The same as a part of another server: answers requests for /mcp, and 404 to any other. */
export function officeTools(options: OfficeToolsOptions = {}): Pick<OfficeTools, "mintToken" | "calls"> & { serve: RequestListener } {
  const tokens = sessionTokens(options.secret);
  const calls: OfficeCall[] = [];
  return {
    serve(request, response) {
      serve(request, response, { options, tokens, calls }).catch((error: unknown) => response.destroy(error as Error));
    },
    mintToken: (sessionId, tools) => tokens.mint(sessionId, tools),
    calls,
  };
}

interface Context {
  options: OfficeToolsOptions;
  tokens: SessionTokens;
  calls: OfficeCall[];
}

async function serve(request: IncomingMessage, response: ServerResponse, context: Context): Promise<void> {
  const text = await readBody(request, MAX_BODY_BYTES);
  // Codex 0.144.4 first looks for OAuth by GETs, here and at /.well-known: plain refusals let it go on.
  if (request.url !== "/mcp") return refuse(response, 404);
  if (request.method !== "POST") return refuse(response, 405);
  if (text === null) return refuse(response, 413);
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    return refuse(response, 400);
  }
  // Stateless: the SDK wants a server and a transport per request then.
  const server = mcpServer(context);
  const transport = new StreamableHTTPServerTransport({ enableJsonResponse: context.options.replies !== "sse" });
  response.once("close", () => void server.close());
  await server.connect(transport);
  await transport.handleRequest(request, response, body);
}

function mcpServer({ options, tokens, calls }: Context): McpServer {
  const mcp = new McpServer({ name: "office-tools", version: "1.0.0" }, { capabilities: { tools: {} } });
  mcp.server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: [...OFFICE_TOOLS] }));
  mcp.server.setRequestHandler(CallToolRequestSchema, async ({ params }, extra): Promise<CallToolResult> => {
    const token = extra.requestInfo?.headers[SESSION_TOKEN_HEADER.toLowerCase()];
    const session = typeof token === "string" ? tokens.verify(token) : null;
    const { _meta: meta } = extra;
    const threadId = meta?.["threadId"];
    const call = {
      session_id: session?.sessionId ?? null,
      tool: params.name,
      args: params.arguments ?? {},
      started_at: Date.now(),
      thread_id: typeof threadId === "string" ? threadId : null,
    };
    const record = (outcome: OfficeCall["outcome"]): void => {
      calls.push({ ...call, ended_at: Date.now(), outcome });
      if (calls.length > MAX_CALLS) calls.shift();
    };
    const refusal =
      session === null
        ? "no valid session token came with the call"
        : session.tools?.includes(params.name) === false
          ? `the session may not call ${params.name}`
          : null;
    if (refusal !== null) {
      record("refused");
      throw new McpError(ErrorCode.InvalidRequest, refusal);
    }
    await sleep(options.delayMs?.(params.name) ?? 0);
    const result = runOfficeTool(params.name, call.args);
    record(result.isError === true ? "tool_error" : "ok");
    return result;
  });
  return mcp;
}

function refuse(response: ServerResponse, status: number): void {
  response.writeHead(status, status === 405 ? { allow: "POST" } : {});
  response.end();
}
