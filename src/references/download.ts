// SPDX-License-Identifier: Apache-2.0
import { createWriteStream } from "node:fs";
import { rm } from "node:fs/promises";
import { get as httpGet, type IncomingMessage } from "node:http";
import { get as httpsGet } from "node:https";
import { setTimeout as delay } from "node:timers/promises";
import { pipeline } from "node:stream/promises";
import pRetry from "p-retry";
import { measured } from "../artifacts/measured.ts";
import { RollcallError } from "../errors.ts";
import { Bound } from "../host/bound.ts";
import { lookupFor, whyNotFetched, type AllowedHosts } from "./may-fetch.ts";
import { shownUrl } from "./reference.ts";

export interface DownloadOptions {
  allowed: AllowedHosts;
  maxBytes: number;
  /** Between two tries; doubled up to the longest. */
  firstPauseMs?: number;
  /** Ends it; then it rejects with the signal's reason. */
  signal?: AbortSignal | undefined;
}

/** Upstream's: six tries, 1 to 30 s between them, 60 s without a byte. */
const RETRIES = 5;
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 30_000;
const SILENCE_MS = 60_000;
/** One try as a whole: a server that sends a byte now and then holds up nobody for ever. */
const LONGEST_TRY_MS = 30 * 60_000;
const MAX_REDIRECTS = 5;
const NEVER = new AbortController().signal;

/**
 * Streams a URL into a new file, measured on the way. What may pass is tried again: no connection, a body cut off, 408, 425,
 * 429 (a Retry-After up to 30 s is kept), 5xx. Redirects are followed, each judged like the URL itself. Throws RollcallError
 * "reference_refused", "reference_too_large", "reference_missing"; no file is left then.
 */
export async function download(url: URL, target: string, options: DownloadOptions): Promise<{ bytes: number; sha256: string }> {
  try {
    return await pRetry(() => once(url, target, options), {
      retries: RETRIES,
      minTimeout: options.firstPauseMs ?? FIRST_PAUSE_MS,
      maxTimeout: LONGEST_PAUSE_MS,
      randomize: true,
      ...(options.signal === undefined ? {} : { signal: options.signal }),
      shouldRetry: ({ error }) => !(error instanceof RollcallError),
      async onFailedAttempt({ error }) {
        if (error instanceof HttpStatus) await delay(Math.min(error.retryAfterMs, LONGEST_PAUSE_MS), undefined, { signal: options.signal });
      },
    });
  } catch (error) {
    await rm(target, { force: true });
    options.signal?.throwIfAborted();
    if (error instanceof RollcallError) throw error;
    throw new RollcallError("reference_missing", `${shownUrl(url)} could not be fetched: ${reasonOf(error)}`, { cause: error });
  }
}

class HttpStatus extends Error {
  readonly retryAfterMs: number;

  constructor(status: number, retryAfter: string | undefined) {
    super(`HTTP ${status}`);
    const seconds = Number(retryAfter ?? 0);
    this.retryAfterMs = Number.isFinite(seconds) ? Math.max(0, seconds) * 1_000 : 0;
  }
}

async function once(url: URL, target: string, options: DownloadOptions): Promise<{ bytes: number; sha256: string }> {
  const bound = new Bound({ seconds: LONGEST_TRY_MS / 1_000, signal: options.signal ?? NEVER });
  try {
    return await fetched(url, target, options, bound.signal);
  } finally {
    bound.end();
  }
}

async function fetched(
  url: URL,
  target: string,
  options: DownloadOptions,
  signal: AbortSignal,
): Promise<{ bytes: number; sha256: string }> {
  const response = await follow(url, options, signal);
  const announced = Number(response.headers["content-length"] ?? 0);
  if (announced > options.maxBytes) {
    response.destroy();
    throw tooLarge(url, options.maxBytes);
  }
  const { bytes, written } = measured(response);
  async function* bounded(): AsyncGenerator<Buffer> {
    let count = 0;
    for await (const chunk of bytes as AsyncIterable<Buffer>) {
      count += chunk.length;
      if (count > options.maxBytes) throw tooLarge(url, options.maxBytes);
      yield chunk;
    }
  }
  await pipeline(bounded(), createWriteStream(target, { mode: 0o600, flush: true }));
  return written();
}

async function follow(first: URL, options: DownloadOptions, signal: AbortSignal): Promise<IncomingMessage> {
  let url = first;
  for (let redirects = 0; ; redirects++) {
    const refused = whyNotFetched(url, options.allowed);
    if (refused !== null) throw new RollcallError("reference_refused", `${shownUrl(url)}: ${refused}`);
    const response = await answerOf(url, options.allowed, signal);
    const { statusCode: status = 0, headers } = response;
    if (status === 200) return response;
    response.destroy();
    const { location } = headers;
    if (status >= 300 && status < 400 && location !== undefined && URL.canParse(location, url.href)) {
      if (redirects === MAX_REDIRECTS) throw failed(first, `more than ${MAX_REDIRECTS} redirects`);
      url = new URL(location, url);
      continue;
    }
    if ([408, 425, 429].includes(status) || status >= 500) throw new HttpStatus(status, headers["retry-after"]);
    throw failed(first, `HTTP ${status}`);
  }
}

/** Not fetch(): only here can the address be judged that the connection really goes to. */
function answerOf(url: URL, allowed: AllowedHosts, signal: AbortSignal): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const get = url.protocol === "https:" ? httpsGet : httpGet;
    const headers = { "accept-encoding": "identity", "user-agent": "rollcall" };
    const lookup = lookupFor(url, allowed);
    const request = get(url, { headers, signal, timeout: SILENCE_MS, ...(lookup === undefined ? {} : { lookup }) }, resolve);
    request.on("timeout", () => request.destroy(new Error(`no byte for ${SILENCE_MS / 1_000} s`)));
    request.on("error", reject);
  });
}

function failed(url: URL, reason: string): RollcallError {
  return new RollcallError("reference_missing", `${shownUrl(url)} could not be fetched: ${reason}`);
}

function tooLarge(url: URL, maxBytes: number): RollcallError {
  return new RollcallError("reference_too_large", `${shownUrl(url)} has over ${maxBytes} bytes`);
}

/** Without the address, which may be all that an error of the network says. */
function reasonOf(error: unknown): string {
  if (error instanceof AggregateError) return reasonOf(error.errors[0]);
  const code = error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : null;
  if (error instanceof HttpStatus) return `${error.message}, after ${RETRIES + 1} tries`;
  return `${code ?? (error instanceof Error ? error.message : "unknown")}, after ${RETRIES + 1} tries`;
}
