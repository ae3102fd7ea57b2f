// SPDX-License-Identifier: Apache-2.0
import { once } from "node:events";
import { createServer, request as httpRequest, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";

/** What happens to one request. */
export type Fault =
  | { kind: "none" }
  /** 503 in the server's place. */
  | { kind: "busy" }
  /** The connection breaks; the server never hears of it. */
  | { kind: "lost_request" }
  /** The server does it; the connection breaks before the answer. */
  | { kind: "lost_answer" }
  /** The connection ends, or is reset, after so many bytes of the answer's body. */
  | { kind: "cut"; after: number; reset: boolean };

export interface ProxiedRequest {
  method: string;
  path: string;
  headers: IncomingHttpHeaders;
}

export interface FaultyProxy {
  origin: string;
  close(): Promise<void>;
}

/**
 * Stands before a server and loses what it is told to. `before` decides when a request has come, `after` once the server has
 * answered it (never "busy" or "lost_request" there). The caller closes it.
 */
export async function startFaultyProxy(
  target: string,
  faults: { before: (request: ProxiedRequest) => Fault; after: (request: ProxiedRequest, body: string) => Fault },
): Promise<FaultyProxy> {
  const server = createServer((incoming, response) => {
    const asked = { method: incoming.method ?? "", path: incoming.url ?? "", headers: incoming.headers };
    const before = faults.before(asked);
    if (before.kind === "lost_request") return void incoming.socket.destroy();
    if (before.kind === "busy") {
      const problem = { type: "about:blank", title: "busy", status: 503, code: "redis_away", detail: "try again" };
      incoming.resume();
      return void response.writeHead(503, { "content-type": "application/problem+json", "retry-after": "1" }).end(JSON.stringify(problem));
    }
    const forwarded = httpRequest(target + asked.path, { method: asked.method, headers: asked.headers });
    forwarded.on("error", () => response.destroy());
    response.on("close", () => forwarded.destroy());
    forwarded.on("response", (answer) => {
      const parts: Buffer[] = [];
      answer.on("error", () => response.destroy());
      answer.on("data", (part: Buffer) => parts.push(part));
      answer.on("end", () => {
        const body = Buffer.concat(parts);
        const after = before.kind === "none" ? faults.after(asked, body.toString("utf8")) : before;
        if (after.kind === "lost_answer") return void response.destroy();
        response.writeHead(answer.statusCode ?? 500, answer.headers);
        if (after.kind === "cut") {
          const { socket } = incoming;
          response.write(body.subarray(0, after.after), () => (after.reset ? socket.resetAndDestroy() : socket.destroy()));
        } else response.end(body);
      });
    });
    incoming.pipe(forwarded);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}
