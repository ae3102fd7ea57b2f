// SPDX-License-Identifier: Apache-2.0
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { readBody, serveOnLoopback, type LoopbackServer } from "../../examples/stand-ins/loopback.ts";

interface Message {
  id?: number | string;
  method?: string;
  params?: { cursor?: string };
}

export interface SmallServer {
  readonly url: string;
  readonly port: number;
  /** Methods asked for, in order; "GET" and "DELETE" for requests without a message. */
  readonly asked: string[];
  /** The request headers, in the same order. */
  readonly headers: IncomingMessage["headers"][];
  close(): Promise<void>;
}

export interface SmallServerOptions {
  port?: number;
  /** Names of tools; one inner list a page. */
  pages?: string[][];
  /** Methods that are never answered. */
  silent?: string[];
  /** Answers in place of the usual ones; true = it did. */
  instead?: (message: Message, request: IncomingMessage, response: ServerResponse) => boolean;
  /** Issued at initialize. */
  sessionId?: string;
}

/** An MCP server written out by hand, so that it can do what the SDK's would not. The caller closes it. */
export async function startSmallServer(options: SmallServerOptions = {}): Promise<SmallServer> {
  const asked: string[] = [];
  const headers: IncomingMessage["headers"][] = [];
  const server: LoopbackServer = await serveOnLoopback((request, response) => {
    void (async () => {
      const text = (await readBody(request, 1024 * 1024)) ?? "";
      const message: Message = request.method === "POST" ? (JSON.parse(text) as Message) : {};
      asked.push(message.method ?? String(request.method));
      headers.push(request.headers);
      if (options.instead?.(message, request, response) === true) return;
      if (options.silent?.includes(message.method ?? "") === true) return;
      answer(message, request, response, options);
    })();
  }, options.port);
  const port = Number(new URL(server.origin).port);
  return { url: `${server.origin}/mcp`, port, asked, headers, close: () => server.close() };
}

function answer(message: Message, request: IncomingMessage, response: ServerResponse, options: SmallServerOptions): void {
  if (request.method !== "POST") {
    response.writeHead(request.method === "DELETE" ? 200 : 405).end();
    return;
  }
  if (message.id === undefined) {
    response.writeHead(202).end();
    return;
  }
  const { pages = [["finish"]], sessionId } = options;
  const page = Number(message.params?.cursor ?? 0);
  const result =
    message.method === "initialize"
      ? { protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo: { name: "small", version: "1" } }
      : {
          tools: (pages[page] ?? []).map((name) => ({ name, description: "A tool.", inputSchema: { type: "object", properties: {} } })),
          ...(page + 1 < pages.length ? { nextCursor: String(page + 1) } : {}),
        };
  response.writeHead(200, {
    "content-type": "application/json",
    ...(sessionId !== undefined && message.method === "initialize" ? { "mcp-session-id": sessionId } : {}),
  });
  response.end(JSON.stringify({ jsonrpc: "2.0", id: message.id, result }));
}

/** A port where nobody listens: it was free a moment ago. */
export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
