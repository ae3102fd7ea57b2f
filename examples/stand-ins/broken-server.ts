// SPDX-License-Identifier: Apache-2.0
import type { IncomingMessage, ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { readBody, serveOnLoopback } from "./loopback.ts";
import { SESSION_TOKEN_HEADER } from "./session-tokens.ts";

/**
 * What is wrong with it: nobody listens | it never answers | an HTTP error | a web page | the connection is closed without
 * an answer | an error in the protocol's own form | a result that is not what was asked for | "no such session", in a form
 * that names no request, as the MCP SDK's servers answer after they were started again | the
 * right answer, late.
 */
export type BrokenKind = "refuses" | "hang" | "status" | "html" | "close" | "jsonrpc_error" | "bad_result" | "session_lost" | "slow";

export interface BrokenServerOptions {
  /** The request that meets it; all others are answered as MCP prescribes. Default "initialize", with which every request meets it. */
  at?: "initialize" | "tools/list" | "tools/call";
  /** What it offers when it is asked for that, before the fault. Default `finish`. */
  tools?: readonly string[];
  /** Of kind "slow": the server that answers everything, and how late the request `at` gets its answer. */
  late?: { upstream: string; ms: number };
  /** Of kind "status", default 401; of "session_lost", default 400. */
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
  const asked = await readBody(request, 1024 * 1024).catch(() => null);
  const token = String(request.headers[(options.echoHeader ?? SESSION_TOKEN_HEADER).toLowerCase()] ?? "");
  const said = options.message ?? "the office tools are down";
  const call = requestIn(asked);
  if (options.late !== undefined) {
    if (call.method === options.at) await sleep(options.late.ms);
    return passOn(options.late.upstream, request, asked, response);
  }
  if (options.at !== undefined && options.at !== "initialize" && call.method !== options.at) {
    const { status, body } = goodAnswer(call, options);
    return send(response, status, "application/json", body, { "mcp-session-id": "stand-in-session" });
  }
  if (kind === "hang") return;
  if (kind === "close") return void request.socket.destroy();
  const message = `${said}${echoed(token, options.echo, said.length)}`.padEnd(options.fillTo ?? 0, " and so on");
  if (kind === "html") return send(response, 200, "text/html", `<html><body><h1>Welcome</h1><p>${message}</p></body></html>`);
  if (kind === "status") return send(response, options.status ?? 401, "text/plain", message);
  const json = (value: object, status = 200): void =>
    send(response, status, "application/json", JSON.stringify({ jsonrpc: "2.0", id: call.id ?? null, ...value }));
  if (kind === "bad_result") return json({ result: { tools: [{ name: 7, message }] } });
  if (kind === "session_lost") return json({ id: null, error: { code: -32_000, message } }, options.status ?? 400);
  json({ error: { code: -32_001, message } });
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

interface Asked {
  id?: unknown;
  method?: unknown;
  params?: { protocolVersion?: unknown };
}

function goodAnswer({ id, method, params }: Asked, options: BrokenServerOptions): { status: number; body: string } {
  const result = (value: object): { status: number; body: string } => ({
    status: 200,
    body: JSON.stringify({ jsonrpc: "2.0", id, result: value }),
  });
  switch (method) {
    case "initialize": {
      const serverInfo = { name: "broken", version: "1.0.0" };
      return result({ protocolVersion: params?.protocolVersion, capabilities: { tools: {} }, serverInfo });
    }
    case "notifications/initialized":
      return { status: 202, body: "" };
    case "tools/list": {
      const inputSchema = { type: "object", properties: {} };
      return result({ tools: (options.tools ?? ["finish"]).map((name) => ({ name, description: name, inputSchema })) });
    }
    case "tools/call":
      return result({ content: [{ type: "text", text: "done" }] });
    default:
      return { status: 405, body: "" }; // no stream of its own, no OAuth
  }
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

function requestIn(body: string | null): Asked {
  try {
    return JSON.parse(body ?? "") as Asked;
  } catch {
    return {};
  }
}

function send(response: ServerResponse, status: number, type: string, body: string, headers: Record<string, string> = {}): void {
  response.writeHead(status, { "content-type": type, ...headers });
  response.end(body);
}
