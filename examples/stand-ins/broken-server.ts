// SPDX-License-Identifier: Apache-2.0
import type { IncomingMessage, ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { readBody, serveOnLoopback } from "./loopback.ts";
import { SESSION_TOKEN_HEADER } from "./session-tokens.ts";

/**
 * What is wrong with it: nobody listens | it never answers | an HTTP error | a web page | the connection is closed without
 * an answer | an error in the protocol's own form | a result of its own | the right answer, late.
 */
export type BrokenKind = "refuses" | "hang" | "status" | "html" | "close" | "jsonrpc_error" | "result" | "slow";

export interface BrokenServerOptions {
  /** Of kind "status", default 401; of "jsonrpc_error", default 200. */
  status?: number;
  /** What the body says where there is one; default a plain sentence. */
  message?: string;
  /**
   * The token header is repeated in the body: as it came, as a JSON string would hold it, as it came after 100 KB of
   * other text, or so that a reader of the first 8,192 bytes (Codex 0.144.4) cuts it in its middle.
   */
  echo?: "raw" | "json" | "long" | "cut";
  /** The body is filled up to this many bytes. */
  fillTo?: number;
  /** Only requests of this JSON-RPC method are broken, e.g. "tools/list"; all others are answered by a server that works. */
  only?: { method: string; upstream: string };
  /** With `only`: begins an MCP session, which the other requests name and this one forgot. Its error then answers no request (id null). */
  session?: boolean;
  /** Of kind "result". */
  result?: object;
  /** Of kind "slow", which needs `only`: milliseconds. */
  delayMs?: number;
  /** Which header is repeated; default the session token's. */
  echoHeader?: string;
}

export interface BrokenServer {
  readonly url: string;
  /** How many requests came. */
  readonly requests: () => number;
  close(): Promise<void>;
}

/** A tool server that is down in one certain way. The caller closes it. */
export async function startBrokenServer(kind: BrokenKind, options: BrokenServerOptions = {}): Promise<BrokenServer> {
  let requests = 0;
  const server = await serveOnLoopback((request, response) => {
    requests++;
    answer(kind, request, response, options).catch((error: unknown) => response.destroy(error as Error));
  });
  // The port was free a moment ago: as near to "nobody listens there" as one gets without keeping it.
  if (kind === "refuses") await server.close();
  return { url: `${server.origin}/mcp`, requests: () => requests, close: () => server.close() };
}

async function answer(kind: BrokenKind, request: IncomingMessage, response: ServerResponse, options: BrokenServerOptions): Promise<void> {
  const { only } = options;
  const asked = only === undefined && (kind === "hang" || kind === "close") ? null : await readBody(request, 1024 * 1024).catch(() => null);
  if (only !== undefined && fieldOf(asked, "method") !== only.method) {
    if (options.session === true && fieldOf(asked, "method") === "initialize") response.setHeader("mcp-session-id", "session-1");
    return passOn(only.upstream, request, asked, response);
  }
  if (kind === "slow") await sleep(options.delayMs ?? 0);
  if (kind === "slow" && only !== undefined) return passOn(only.upstream, request, asked, response);
  if (kind === "hang") return;
  if (kind === "close") {
    request.socket.destroy();
    return;
  }
  const token = String(request.headers[(options.echoHeader ?? SESSION_TOKEN_HEADER).toLowerCase()] ?? "");
  const said = options.message ?? "the office tools are down";
  const message = `${said}${echoed(token, options.echo, said.length)}`.padEnd(options.fillTo ?? 0, " and so on");
  if (kind === "html") return send(response, 200, "text/html", `<html><body><h1>Welcome</h1><p>${message}</p></body></html>`);
  if (kind === "status") return send(response, options.status ?? 401, "text/plain", message);
  const outcome = kind === "result" ? { result: options.result ?? {} } : { error: { code: -32_001, message } };
  const id = options.session === true ? null : fieldOf(asked, "id");
  const status = kind === "jsonrpc_error" ? (options.status ?? 200) : 200;
  send(response, status, "application/json", JSON.stringify({ jsonrpc: "2.0", id, ...outcome }));
}

/** The same request to the server that works, and its answer. */
async function passOn(upstream: string, request: IncomingMessage, body: string | null, response: ServerResponse): Promise<void> {
  const { connection: _connection, "content-length": _length, host: _host, ...headers } = request.headers;
  const { pathname } = new URL(request.url ?? "/", upstream);
  const answered = await fetch(new URL(pathname, upstream), {
    method: request.method ?? "POST",
    headers: headers as Record<string, string>,
    ...(request.method === "POST" ? { body } : {}),
  });
  send(response, answered.status, answered.headers.get("content-type") ?? "text/plain", await answered.text());
}

function echoed(token: string, how: BrokenServerOptions["echo"], after: number): string {
  switch (how) {
    case undefined:
      return "";
    case "raw":
      return ` (token ${token})`;
    case "json":
      return ` (token ${JSON.stringify(token)})`;
    case "long":
      return ` ${"x".repeat(100_000)} (token ${token})`;
    case "cut":
      return " ".padEnd(8192 - after - Math.ceil(token.length / 2), "x") + token;
    default:
      return how satisfies never;
  }
}

function fieldOf(body: string | null, field: "id" | "method"): unknown {
  try {
    return (JSON.parse(body ?? "") as { id?: unknown; method?: unknown })[field] ?? null;
  } catch {
    return null;
  }
}

function send(response: ServerResponse, status: number, type: string, body: string): void {
  response.writeHead(status, { "content-type": type });
  response.end(body);
}
