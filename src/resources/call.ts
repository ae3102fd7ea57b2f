// SPDX-License-Identifier: Apache-2.0
import type { Agent, Dispatcher, request } from "undici";
import { messageOf } from "../errors.ts";
import { Bound } from "../host/bound.ts";
import { redactTail, type SecretSet } from "../redact/index.ts";
import { CallFailure, retryAfterMs } from "./call-failure.ts";
import { afterSetCookie, cookieHeader, type Cookies } from "./cookies.ts";

const CONNECT_MS = 10_000;
const MAX_REDIRECTS = 3;
/** Enough of a refusal to tell what it is about. */
const MAX_SAID_BYTES = 16 * 1024;
const MAX_SAID_CHARACTERS = 600;
/** Failures before anything was sent. */
const NOT_SENT = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH", "UND_ERR_CONNECT_TIMEOUT"]);

export interface Call {
  url: string;
  body: unknown;
  cookies: Cookies;
  timeoutMs: number;
  maxAnswerBytes: number;
  /** What must not come back in an error. */
  secrets: SecretSet;
  /** The process stops. */
  signal: AbortSignal;
}

interface CallAnswer {
  /** Parsed JSON. */
  value: unknown;
  cookies: Cookies;
}

export interface Caller {
  /** Throws CallFailure, or the signal's reason. */
  post(call: Call): Promise<CallAnswer>;
  /** Asks for a JSON document; the same otherwise. */
  get(call: Omit<Call, "body">): Promise<CallAnswer>;
  close(): Promise<void>;
}

/**
 * Calls to resources servers. Not the fetch of Node: that gives up after five minutes without a header, and a judge takes longer.
 * Each call has a connection of its own, because one that was kept may be closed by its server just then.
 */
export function openCaller(): Caller {
  let opened: Promise<Http> | null = null;
  const http = (): Promise<Http> => (opened ??= openHttp());
  return {
    post: async (call) => bounded(await http(), "POST", call),
    get: async (call) => bounded(await http(), "GET", { ...call, body: undefined }),
    close: async () => (await opened)?.agent.destroy(),
  };
}

interface Http {
  agent: Agent;
  request: typeof request;
}

/** Loaded with the first call: most commands and workers make none, and it is a fifth of their start. */
async function openHttp(): Promise<Http> {
  const { Agent, request } = await import("undici");
  return { agent: new Agent({ headersTimeout: 0, bodyTimeout: 0, connect: { timeout: CONNECT_MS }, pipelining: 0 }), request };
}

async function bounded(http: Http, method: "POST" | "GET", call: Call): Promise<CallAnswer> {
  const bound = new Bound({ seconds: call.timeoutMs / 1_000, signal: call.signal });
  try {
    return await send(http, method, call, bound.signal);
  } catch (error) {
    call.signal.throwIfAborted();
    if (error instanceof CallFailure) throw error;
    if (bound.signal.aborted) throw new CallFailure({ kind: "timeout", seconds: call.timeoutMs / 1_000 });
    const code = codeOf(error);
    throw new CallFailure({ kind: NOT_SENT.has(code) ? "unreachable" : "peer_drop", code });
  } finally {
    bound.end();
  }
}

async function send(http: Http, method: "POST" | "GET", call: Call, signal: AbortSignal): Promise<CallAnswer> {
  const cookie = cookieHeader(call.cookies);
  const options = {
    method,
    dispatcher: http.agent,
    signal,
    reset: true,
    headers: {
      accept: "application/json",
      ...(method === "POST" ? { "content-type": "application/json" } : {}),
      ...(cookie === null ? {} : { cookie }),
    },
    body: method === "POST" ? JSON.stringify(call.body) : null,
  };
  let url = call.url;
  for (let redirects = 0; ; redirects++) {
    const answer = await http.request(url, options);
    const { statusCode: status, headers } = answer;
    const target = status === 307 || status === 308 ? sameOrigin(headers["location"], url) : null;
    if (target !== null && redirects < MAX_REDIRECTS) {
      await answer.body.dump();
      url = target;
      continue;
    }
    if (status < 200 || status > 299) {
      const said = redactTail(call.secrets, oneLine(await beginningOf(answer)), { maxChars: MAX_SAID_CHARACTERS });
      throw new CallFailure({ kind: "status", status, retryAfterMs: retryAfterMs(first(headers["retry-after"]), Date.now()), said });
    }
    const value = parsed(await wholeBody(answer, call.maxAnswerBytes));
    return { value, cookies: afterSetCookie(call.cookies, listOf(headers["set-cookie"])) };
  }
}

/** Cookies and rows never go to another place than the one that was named. */
function sameOrigin(location: string | string[] | undefined, base: string): string | null {
  const text = first(location);
  if (text === undefined || !URL.canParse(text, base)) return null;
  const target = new URL(text, base);
  return target.origin === new URL(base).origin ? target.href : null;
}

async function wholeBody({ body }: Dispatcher.ResponseData, maxBytes: number): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > maxBytes)
      throw new CallFailure({ kind: "protocol", what: `its answer is longer than ${maxBytes} bytes (resources.max_answer_mb)` });
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

async function beginningOf({ body }: Dispatcher.ResponseData): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes >= MAX_SAID_BYTES) break; // which ends the connection
  }
  return Buffer.concat(chunks).subarray(0, MAX_SAID_BYTES).toString("utf8");
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new CallFailure({ kind: "protocol", what: "its answer is not JSON" });
  }
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, " ").trim();
}

function first(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header[0] : header;
}

function listOf(header: string | string[] | undefined): string[] {
  return header === undefined ? [] : Array.isArray(header) ? header : [header];
}

/** Never the message: it may quote a header. */
function codeOf(error: unknown): string {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  if (/^[A-Z][A-Z0-9_]{2,40}$/.test(code)) return code;
  return /terminated|aborted|socket|closed/i.test(messageOf(error)) ? "connection closed" : "network error";
}
