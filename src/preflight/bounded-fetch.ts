// SPDX-License-Identifier: Apache-2.0
import type { Said } from "./finding.ts";

/** Enough of a refusal's body to tell what it is about. */
const MAX_REFUSAL_BYTES = 16 * 1024;
/** Thousands of tools with their schemas. */
const MAX_ANSWER_BYTES = 8 * 1024 * 1024;

/** An answer that ends the conversation: an HTTP error, or a redirect that is not followed. */
export class HttpAnswer extends Error {
  readonly status: number;
  readonly body: Said;
  /** Where it redirects to, without what a URL can hold of secrets; null = no redirect. */
  readonly redirect: string | null;

  constructor(status: number, body: Said, redirect: string | null) {
    super(`HTTP ${status}`);
    this.name = "HttpAnswer";
    this.status = status;
    this.body = body;
    this.redirect = redirect;
  }
}

/** The global fetch, or one that goes another way. */
export type Fetch = (url: string | URL, init?: RequestInit) => Promise<Response>;

/**
 * fetch for one server: the grant's headers never follow a redirect to another origin, not even to its https form, and
 * no body is read without bound. Rejects with HttpAnswer for a POST that was not answered well.
 */
export function boundedFetch(send: Fetch): Fetch {
  return async (url, init = {}) => bounded(await send(url, { ...init, redirect: "manual" }), url, init);
}

async function bounded(response: Response, url: string | URL, init: RequestInit): Promise<Response> {
  const location = response.headers.get("location");
  const target = response.status >= 300 && response.status < 400 && location !== null ? parsed(location, url) : null;
  if (target !== null) {
    const sameOrigin = target.origin === new URL(url).origin;
    const keepsMethod = init.method !== "POST" || response.status === 307 || response.status === 308;
    if (sameOrigin && keepsMethod) return response; // the SDK follows it, through here again
    await response.body?.cancel();
    throw new HttpAnswer(response.status, { text: "" }, target.origin + target.pathname);
  }
  if (init.method === "POST" && !response.ok) throw new HttpAnswer(response.status, await beginningOf(response), null);
  return withinBytes(response);
}

function parsed(location: string, base: string | URL): URL | null {
  return URL.canParse(location, String(base)) ? new URL(location, base) : null;
}

async function beginningOf(response: Response): Promise<Said> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  // Leaving the loop early cancels the body.
  for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > MAX_REFUSAL_BYTES) break;
  }
  return { text: Buffer.concat(chunks).subarray(0, MAX_REFUSAL_BYTES).toString("utf8"), endsAtCut: bytes > MAX_REFUSAL_BYTES };
}

function withinBytes(response: Response): Response {
  if (response.body === null) return response;
  let bytes = 0;
  const counted = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      bytes += chunk.length;
      if (bytes > MAX_ANSWER_BYTES) controller.error(new Error(`the answer is longer than ${MAX_ANSWER_BYTES} bytes`));
      else controller.enqueue(chunk);
    },
  });
  const { status, statusText, headers } = response;
  return new Response(response.body.pipeThrough(counted), { status, statusText, headers });
}
