// SPDX-License-Identifier: Apache-2.0
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";

export interface Received {
  path: string;
  headers: IncomingHttpHeaders;
  body: string;
}

export interface Receiver {
  origin: string;
  received: Received[];
}

/** A real receiver on a free loopback port; it ends with the test. `answer` gets each request when all of it has come. */
export async function startReceiver(answer: (response: ServerResponse, request: Received, before: number) => void): Promise<Receiver> {
  const received: Received[] = [];
  const server = createServer((request, response) => void take(request, response));
  async function take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let body = "";
    for await (const chunk of request.setEncoding("utf8")) body += chunk;
    const one = { path: request.url ?? "", headers: request.headers, body };
    received.push(one);
    answer(response, one, received.length - 1);
  }
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, received };
}

export function status(code: number, headers: Record<string, string> = {}, text = ""): (response: ServerResponse) => void {
  return (response) => void response.writeHead(code, headers).end(text);
}
