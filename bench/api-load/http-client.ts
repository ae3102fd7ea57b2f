// SPDX-License-Identifier: Apache-2.0
import { once } from "node:events";
import { Agent, request, type IncomingMessage } from "node:http";
import { setTimeout as delay } from "node:timers/promises";

export interface HttpClient {
  /** The parsed answer of a success. Throws on any other, but 429 and 503, which are asked again when they say. */
  call(path: string, options?: { method?: string; body?: string }): Promise<unknown>;
  /** The body of a success, unread. */
  open(path: string): Promise<IncomingMessage>;
  /** Of every request that was answered with a success, in ms, in order. */
  readonly took: number[];
  /** How often an answer was 429 or 503. */
  readonly askedAgain: number;
  close(): void;
}

const MOST_AGAIN = 20;

/** A client that keeps one connection. The caller closes it. */
export function httpClient(origin: string, key: string): HttpClient {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const took: number[] = [];
  let askedAgain = 0;

  async function ask(path: string, method: string, body: string | undefined): Promise<IncomingMessage> {
    for (let again = 0; ; again++) {
      const asking = request(origin + path, {
        agent,
        method,
        headers: { authorization: `Bearer ${key}`, ...(body === undefined ? {} : { "content-type": "application/json" }) },
      });
      asking.end(body);
      const [response] = (await once(asking, "response")) as [IncomingMessage];
      const { statusCode = 0 } = response;
      if (statusCode < 300) return response;
      const text = await textOf(response);
      if ((statusCode !== 503 && statusCode !== 429) || again === MOST_AGAIN) throw new Error(`${method} ${path}: ${statusCode} ${text}`);
      askedAgain += 1;
      await delay(1_000 * Number(response.headers["retry-after"] ?? 1));
    }
  }

  return {
    async call(path, { method = "GET", body } = {}) {
      const before = askedAgain;
      const since = performance.now();
      const text = await textOf(await ask(path, method, body));
      if (askedAgain === before) took.push(performance.now() - since);
      return JSON.parse(text) as unknown;
    },
    open: (path) => ask(path, "GET", undefined),
    took,
    get askedAgain() {
      return askedAgain;
    },
    close: () => agent.destroy(),
  };
}

async function textOf(response: IncomingMessage): Promise<string> {
  let text = "";
  for await (const part of response.setEncoding("utf8")) text += part as string;
  return text;
}
