// SPDX-License-Identifier: Apache-2.0
import * as http from "node:http";
import * as https from "node:https";
import { RollcallError } from "../errors.ts";
import { isAllowedHost, lookupPublic } from "../host/public-address.ts";
import { addressRefused, requireHttps, requirePublicLiteral } from "./address.ts";

export interface PostOptions {
  headers: Record<string, string>;
  body: string;
  /** Of the whole exchange. */
  timeoutMs: number;
  /** Hosts that may be called although they are not public, or without TLS. */
  allowHosts: readonly string[];
  signal: AbortSignal;
}

export interface PostAnswer {
  status: number;
  /** Of a 429 or 503 that says when to come again; null = none. */
  retryAfterMs: number | null;
  /** The beginning of the body, as far as it came. */
  text: string;
}

/** Enough to see what a receiver complains of. */
const MAX_ANSWER_BYTES = 4 * 1024;

/**
 * One POST: no redirect is followed, no connection is kept, no more than the beginning of the answer is read. Where the host is not
 * allowed by name, its address is looked at when the connection is made. Throws RollcallError "address_refused" or
 * "https_needed", "post_timeout", what the connection throws, or the signal's reason.
 */
export async function postBounded(address: string, options: PostOptions): Promise<PostAnswer> {
  const { headers, body, timeoutMs, allowHosts, signal } = options;
  const url = new URL(address);
  const allowed = isAllowedHost(url, allowHosts);
  if (!allowed) requireHttps(url);
  if (!allowed) requirePublicLiteral(url);
  const { request } = url.protocol === "https:" ? https : http;
  const timeout = AbortSignal.timeout(timeoutMs);
  const ended = new AbortController();
  const stop = (): void => ended.abort();
  for (const each of [signal, timeout]) each.addEventListener("abort", stop, { once: true });
  try {
    signal.throwIfAborted();
    return await new Promise<PostAnswer>((resolve, reject) => {
      const sent = request(url, {
        method: "POST",
        headers: { ...headers, "content-length": Buffer.byteLength(body) },
        agent: false, // a connection of its own: one that is kept would not be looked at again
        signal: ended.signal,
        maxHeaderSize: 16_384,
        ...(allowed ? {} : { lookup: lookupPublic(addressRefused) }),
      });
      sent.once("error", reject);
      sent.once("response", (response) => void beginningOf(response).then((text) => resolve(answerOf(response, text)), reject));
      sent.end(body);
    });
  } catch (error) {
    signal.throwIfAborted();
    if (timeout.aborted) throw new RollcallError("post_timeout", `no whole answer within ${timeoutMs / 1_000} s`, { cause: error });
    throw error;
  } finally {
    for (const each of [signal, timeout]) each.removeEventListener("abort", stop);
  }
}

async function beginningOf(response: http.IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  // Leaving the loop ends the connection.
  for await (const chunk of response as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > MAX_ANSWER_BYTES) break;
  }
  return Buffer.concat(chunks).subarray(0, MAX_ANSWER_BYTES).toString("utf8");
}

function answerOf({ statusCode = 0, headers }: http.IncomingMessage, text: string): PostAnswer {
  const after = statusCode === 429 || statusCode === 503 ? headers["retry-after"] : undefined;
  return { status: statusCode, retryAfterMs: after === undefined ? null : retryAfterMs(after, Date.now()), text };
}

/** RFC 9110: seconds, or a date. Null for anything else. Pure. */
export function retryAfterMs(text: string, now: number): number | null {
  if (/^\d{1,9}$/.test(text.trim())) return Number(text) * 1_000;
  const at = Date.parse(text);
  return Number.isNaN(at) ? null : Math.max(0, at - now);
}
