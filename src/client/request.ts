// SPDX-License-Identifier: Apache-2.0
import { setTimeout as delay } from "node:timers/promises";
import pRetry from "p-retry";
import type { Problem } from "../api/problem.ts";
import { hasErrno, messageOf, RollcallError } from "../errors.ts";
import { ApiError } from "./api-error.ts";
import { NOT_REPEATABLE, OPERATIONS, type Operation } from "./operations.ts";

export interface RequestOptions {
  /** Of the path, by name. */
  params?: Record<string, string | number>;
  /** Those that are undefined are left out. */
  query?: Record<string, string | number | boolean | undefined>;
  headers?: Record<string, string>;
  /** Sent as JSON. */
  json?: unknown;
  /** Made anew for each try. */
  body?: () => { stream: ReadableStream<Uint8Array>; bytes: number };
  signal?: AbortSignal;
}

export interface ClientOptions {
  /** Where the server is: `http://127.0.0.1:8080`. */
  url: string;
  key: string;
  /** A server that is away, or busy, is asked again for so long. Default 60. */
  retry_seconds?: number;
}

const FIRST_PAUSE_MS = 200;
const LONGEST_PAUSE_MS = 5_000;
const MAX_PROBLEM_BYTES = 1024 * 1024;

export type Send = (operation: Operation, options?: RequestOptions) => Promise<Response>;

/**
 * Sends requests, again when the server cannot be reached, is busy (429) or has lost its queue (503), unless it is unknown whether
 * one that must not come twice has arrived. Resolves with a success; its body is the caller's to read or cancel. Rejects with
 * ApiError, with RollcallError "server_unreachable" or "server_url", or with the signal's reason.
 */
export function sender({ url, key, retry_seconds = 60 }: ClientOptions): Send {
  const base = baseOf(url);
  return async (operation, options = {}) => {
    const [method, template] = OPERATIONS[operation];
    const target = targetOf(base, template, options);
    const { signal } = options;
    const again = (error: unknown): boolean => {
      if (signal?.aborted === true) return false;
      if (error instanceof ApiError) return error.status === 429 || error.status === 503;
      return !NOT_REPEATABLE.has(operation) || neverArrived(error);
    };
    try {
      return await pRetry(() => once(method, target, { key, base, ...options }), {
        retries: Number.POSITIVE_INFINITY,
        minTimeout: FIRST_PAUSE_MS,
        maxTimeout: LONGEST_PAUSE_MS,
        maxRetryTime: retry_seconds * 1_000,
        randomize: true,
        ...(signal === undefined ? {} : { signal }),
        shouldRetry: ({ error }) => again(error),
        async onFailedAttempt({ error }) {
          const seconds = error instanceof ApiError && again(error) ? (error.retryAfter ?? 0) : 0;
          await delay(Math.min(seconds, retry_seconds) * 1_000, undefined, signal === undefined ? {} : { signal });
        },
      });
    } catch (error) {
      signal?.throwIfAborted();
      throw error;
    }
  };
}

function neverArrived(error: unknown): boolean {
  const { cause } = error instanceof RollcallError ? error : {};
  return cause instanceof Error && hasErrno(cause.cause, "ECONNREFUSED");
}

function baseOf(url: string): URL {
  if (URL.canParse(url)) {
    const base = new URL(url);
    if (/^https?:$/.test(base.protocol) && base.username === "" && base.search === "") return base;
  }
  throw new RollcallError("server_url", `${JSON.stringify(url)} is no address of a server: expected http://HOST:PORT or https://HOST`);
}

function targetOf(base: URL, template: string, { params = {}, query = {} }: RequestOptions): URL {
  // A file's path keeps its slashes.
  const path = template.replaceAll(/\{(\w+)\}/g, (_, name: string) => String(params[name]).split("/").map(encodeURIComponent).join("/"));
  const target = new URL(base.pathname.replace(/\/$/, "") + path, base);
  for (const [name, value] of Object.entries(query)) if (value !== undefined) target.searchParams.set(name, String(value));
  return target;
}

async function once(method: string, target: URL, options: RequestOptions & { key: string; base: URL }): Promise<Response> {
  const { key, base, json, body, headers, signal } = options;
  const sent = body?.();
  const response = await fetch(target, {
    method,
    redirect: "error", // the key must not follow
    headers: {
      authorization: `Bearer ${key}`,
      ...(json === undefined ? {} : { "content-type": "application/json" }),
      ...(sent === undefined ? {} : { "content-type": "application/octet-stream", "content-length": String(sent.bytes) }),
      ...headers,
    },
    ...(json === undefined ? {} : { body: JSON.stringify(json) }),
    ...(sent === undefined ? {} : { body: sent.stream, duplex: "half" }),
    ...(signal === undefined ? {} : { signal }),
  }).catch((error: unknown) => {
    throw unreachable(base, error);
  });
  if (response.ok) return response;
  const retryAfter = Number(response.headers.get("retry-after") ?? Number.NaN);
  const problem = await problemIn(response);
  throw new ApiError(`${method} ${target.pathname}`, { problem, retryAfter: Number.isFinite(retryAfter) ? retryAfter : null });
}

function unreachable(base: URL, error: unknown): RollcallError {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  const reason = (cause instanceof AggregateError ? messageOf(cause.errors[0]) : messageOf(cause)) || messageOf(error);
  return new RollcallError(
    "server_unreachable",
    `no answer from ${base.origin}: ${reason}. Is \`rollcall serve\` up, and the address right?`,
    {
      cause: error,
    },
  );
}

/** Whatever stands between may answer in its own form. */
async function problemIn(response: Response): Promise<Problem> {
  const { status } = response;
  const text = await beginningOf(response);
  try {
    const problem = JSON.parse(text) as Partial<Problem> | null;
    if (typeof problem?.code === "string" && typeof problem.title === "string") return { ...(problem as Problem), status };
  } catch {
    // not ours
  }
  return { type: "about:blank", title: "no answer of Rollcall", status, code: "server_answer", detail: `HTTP ${status}` };
}

async function beginningOf(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > MAX_PROBLEM_BYTES) break;
  }
  return Buffer.concat(chunks).toString("utf8");
}
