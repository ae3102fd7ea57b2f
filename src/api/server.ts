// SPDX-License-Identifier: Apache-2.0
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { getRequestListener } from "@hono/node-server";
import { hasErrno, RollcallError } from "../errors.ts";

export interface HttpServer {
  /** `http://127.0.0.1:8080`, with the port that was found. */
  readonly origin: string;
  /** Answers what it has begun for at most `graceMs`, then ends every connection. */
  close(options: { graceMs: number }): Promise<void>;
}

type Fetch = (request: Request) => Response | Promise<Response>;

/** A whole request must have come within this (a large file over a slow line); answers may take as long as they do. */
const REQUEST_MS = 1_800_000;
/** A client that has taken nothing of what was sent to it for so long is gone. One that waits for an answer is not. */
const STALLED_MS = 120_000;
const HEADERS_MS = 20_000;

/** Serves `fetch`. The caller closes it. Throws RollcallError "address_unusable". */
export async function serveHttp(fetch: Fetch, { host, port }: { host: string; port: number }): Promise<HttpServer> {
  const listener = getRequestListener(fetch); // answers its own failures
  const server: Server = createServer(
    { requestTimeout: REQUEST_MS, headersTimeout: HEADERS_MS, maxHeaderSize: 16_384 },
    (request, response) => void listener(request, response),
  );
  server.setTimeout(STALLED_MS, (socket) => void (socket.writableLength > 0 && socket.destroy()));
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error) => reject(unusable(host, port, error)));
    server.listen(port, host, resolve);
  });
  const address = server.address() as AddressInfo;
  const shown = address.family === "IPv6" ? `[${address.address}]` : address.address;
  return {
    origin: `http://${shown}:${address.port}`,
    close: ({ graceMs }) =>
      new Promise((resolve) => {
        const force = setTimeout(() => server.closeAllConnections(), graceMs);
        server.close(() => {
          clearTimeout(force);
          resolve();
        });
        server.closeIdleConnections();
      }),
  };
}

function unusable(host: string, port: number, error: Error): RollcallError {
  const reason = hasErrno(error, "EADDRINUSE")
    ? "another process listens there; choose another --port"
    : hasErrno(error, "EACCES")
      ? "this user may not listen there; choose a --port above 1023"
      : error.message;
  return new RollcallError("address_unusable", `cannot listen on ${host}:${port}: ${reason}`, { cause: error });
}
