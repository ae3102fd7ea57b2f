// SPDX-License-Identifier: Apache-2.0
import { once } from "node:events";
import { createServer, request as httpRequest, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";

export const NONE = { kind: "none" } as const;
/** What becomes of a request that has come. */
type RequestFault =
  | typeof NONE
  /** 503 in the server's place. */
  | { kind: "busy" }
  /** The connection breaks; the server never hears of it. */
  | { kind: "lost_request" };
/** What becomes of the answer to one. */
type AnswerFault =
  | typeof NONE
  /** The connection breaks before it. */
  | { kind: "lost_answer" }
  /** The connection ends, or is reset, after so many bytes of the answer's body. */
  | { kind: "cut"; after: number; reset: boolean };

interface ProxiedRequest {
  method: string;
  path: string;
  headers: IncomingHttpHeaders;
}

interface FaultyProxy {
  origin: string;
  close(): Promise<void>;
}

/** Stands before a server and loses what it is told to. The caller closes it. */
export async function startFaultyProxy(
  target: string,
  faults: { before: (request: ProxiedRequest) => RequestFault; after: (request: ProxiedRequest, body: string) => AnswerFault },
): Promise<FaultyProxy> {
  const server = createServer((incoming, response) => {
    const asked = { method: incoming.method ?? "", path: incoming.url ?? "", headers: incoming.headers };
    const before = faults.before(asked);
    if (before.kind === "lost_request") {
      incoming.socket.destroy();
      return;
    }
    if (before.kind === "busy") {
      const problem = { type: "about:blank", title: "busy", status: 503, code: "redis_away", detail: "try again" };
      incoming.resume();
      response.writeHead(503, { "content-type": "application/problem+json", "retry-after": "1" }).end(JSON.stringify(problem));
      return;
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
        const after = faults.after(asked, body.toString("utf8"));
        if (after.kind === "lost_answer") {
          response.destroy();
          return;
        }
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
