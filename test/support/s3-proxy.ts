// SPDX-License-Identifier: Apache-2.0
import { once } from "node:events";
import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** What becomes of one request: passed on; passed on, and the answer lost; or answered here, in the server's place. */
export type Treatment = "pass" | "lose_answer" | { status: number; body?: string };

export interface S3Proxy {
  endpoint: string;
  /** Decides about each request; set it any time. */
  treat: (request: IncomingMessage) => Treatment;
  close(): Promise<void>;
}

/** Stands before a real S3 server, for answers that it cannot be made to give. */
export async function startS3Proxy(target: string): Promise<S3Proxy> {
  const server = createServer((request, response) => {
    const treatment = proxy.treat(request);
    if (treatment === "pass" || treatment === "lose_answer") passOn(target, request, response, treatment);
    else {
      request.resume().on("end", () => response.writeHead(treatment.status, { "content-type": "application/xml" }).end(treatment.body));
    }
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const proxy: S3Proxy = {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    treat: () => "pass",
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
  return proxy;
}

/** With the Host header as it came: it is signed. */
function passOn(target: string, request: IncomingMessage, response: ServerResponse, treatment: "pass" | "lose_answer"): void {
  const { method, url, headers } = request;
  const { hostname, port } = new URL(target);
  const passed = httpRequest({ hostname, port, path: url, method, headers }, (answer) => {
    if (treatment === "lose_answer") {
      answer.resume().on("end", () => response.destroy());
      return;
    }
    response.writeHead(answer.statusCode ?? 500, answer.headers);
    answer.pipe(response);
  });
  passed.on("error", () => response.destroy());
  request.pipe(passed);
}

/** An S3 refusal. */
export function refusal(status: number, code: string, more = ""): { status: number; body: string } {
  return { status, body: `<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>${code}</Code>${more}</Error>` };
}
