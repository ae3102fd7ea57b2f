// SPDX-License-Identifier: Apache-2.0
import type { IncomingMessage, ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { readBody, serveOnLoopback } from "./loopback.ts";
import { readModelRequest, stepsDone, type ModelRequest } from "./model-request.ts";
import { completed, created, failed, halfMessage, incomplete, itemEvents, newId, sse, type StreamEvent } from "./model-stream.ts";
import { RequestLog } from "./request-log.ts";
import { say, scriptIn, step, type Fault, type Script, type Step, type Usage } from "./script.ts";

const MAX_BODY_BYTES = 64 * 1024 * 1024;
const MAX_COUNTED_FAULTS = 20_000;

/** Not zero, since Codex cannot tell a counter of zero from a missing one, but for the one that only some model servers have. */
const DEFAULT_USAGE: Usage = {
  input_tokens: 1_000,
  cached_input_tokens: 400,
  cache_write_input_tokens: 0,
  output_tokens: 60,
  reasoning_output_tokens: 10,
};

export interface ModelServerOptions {
  /** Default 0: a free port. */
  port?: number;
  /** Asked for as `Authorization: Bearer <key>` when given; otherwise everybody is served. */
  apiKey?: string;
  /** Chosen anew at each call; undefined = the prompt's SCRIPT: line, and without one a plain "Done.". */
  scriptFor?: (request: ModelRequest) => Script | undefined;
  /** Milliseconds before each answer. Default 150: with a faster model Codex 0.144.4 loses the end of commands in its events. */
  replyDelayMs?: number;
  /** Per reply, where a step says nothing itself. */
  usage?: Partial<Usage>;
  log?: RequestLog;
}

export interface ModelServer {
  /** `http://127.0.0.1:<port>`. */
  readonly url: string;
  /** For Codex without a capture key: `<url>/v1`. */
  readonly baseUrl: string;
  /** For activations: `{capture_key}` is replaced by the worker. */
  readonly captureBaseUrl: string;
  readonly log: RequestLog;
  /** Ends every connection, hanging ones included. */
  close(): Promise<void>;
}

/**
 * A stand-in for a model: the streaming Responses API on loopback, answering from scripts. It keeps no conversation; the
 * step is read from the request, so retries and restarts need no care. The caller closes it.
 */
export async function startModelServer(options: ModelServerOptions = {}): Promise<ModelServer> {
  const log = options.log ?? new RequestLog();
  const struck = new Map<string, number>();
  const server = await serveOnLoopback((request, response) => {
    answer(request, response, { options, log, struck }).catch((error: unknown) => response.destroy(error as Error));
  }, options.port);
  return {
    url: server.origin,
    baseUrl: `${server.origin}/v1`,
    captureBaseUrl: `${server.origin}/ng-rollout/{capture_key}/v1`,
    log,
    close: () => server.close(),
  };
}

interface Context {
  options: ModelServerOptions;
  log: RequestLog;
  /** Fault counts by session and step. */
  struck: Map<string, number>;
}

async function answer(incoming: IncomingMessage, response: ServerResponse, context: Context): Promise<void> {
  const { options, log } = context;
  const path = incoming.url ?? "";
  const text = await readBody(incoming, MAX_BODY_BYTES);
  const { headers } = incoming;
  const record = (request: ModelRequest | null, played: string, status: number | null): void =>
    log.add({ at: Date.now(), path, headers, status, played, request }, text?.length ?? 0);
  const reject = (status: number, message: string): void => {
    if (incoming.method === "POST") record(null, "rejected", status);
    respond(response, status, JSON.stringify({ error: { message, type: "invalid_request_error", code: null } }));
  };

  if (incoming.method === "GET" && path.endsWith("/v1/models")) {
    if (options.apiKey !== undefined && headers.authorization !== `Bearer ${options.apiKey}`)
      return respond(response, 401, JSON.stringify({ error: { message: "Incorrect API key provided", code: "invalid_api_key" } }));
    return respond(response, 200, JSON.stringify({ object: "list", data: [] }));
  }
  if (incoming.method !== "POST" || !path.endsWith("/v1/responses")) return reject(404, "only POST .../v1/responses is served here");
  if (options.apiKey !== undefined && headers.authorization !== `Bearer ${options.apiKey}`)
    return reject(401, "Incorrect API key provided");
  if (text === null) return reject(413, `the body has more than ${MAX_BODY_BYTES} bytes`);
  const request = readModelRequest(path, headers, parsedJson(text));
  if (request === null) return reject(400, "the body is not a request of the Responses API");
  let current: Step;
  try {
    current = stepFor(request, options);
  } catch (error) {
    return reject(400, error instanceof Error ? error.message : String(error));
  }

  const fault = current.fault !== undefined && strikes(current.fault, request, context.struck) ? current.fault : null;
  record(request, fault?.kind ?? "reply", fault === null ? 200 : statusOf(fault));
  await pause(current.delay_ms ?? options.replyDelayMs ?? 150, response);
  if (!response.destroyed) play(response, { current, fault, request }, context);
}

interface Played {
  current: Step;
  fault: Fault | null;
  request: ModelRequest;
}

function play(response: ServerResponse, { current, fault, request }: Played, { options, log }: Context): void {
  if (fault?.kind === "close") return void response.destroy();
  if (fault?.kind === "hang") return;
  if (fault?.kind === "status") return respond(response, fault.status, fault.body, fault.headers);
  response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
  const usage = { ...DEFAULT_USAGE, ...defined(options.usage), ...defined(current.usage) };
  const id = newId("resp");
  const events = [...(fault === null ? reply(id, current, request, usage) : broken(id, fault, request, usage))].map(sse).join("");
  if (fault?.kind === "stall") response.write(events);
  // Breaks off once the bytes are out, or the client would see a refused connection instead of a cut stream.
  else if (fault?.kind === "cut") response.write(events, () => response.destroy());
  else response.end(events, () => fault?.kind !== "failed" && log.answered(request, id, usage, fault === null ? "complete" : "incomplete"));
}

function stepFor(request: ModelRequest, options: ModelServerOptions): Step {
  if (request.compaction) return step(say(`Summary of the work so far. ${stepsDone(request.step)}`));
  const script = options.scriptFor?.(request) ?? scriptIn(request.script_text);
  return script?.steps[request.step] ?? step(say("Done."));
}

/** Counts, too: one more strike of this fault in this session. */
function strikes(fault: Fault, request: ModelRequest, struck: Map<string, number>): boolean {
  if (fault.attempt !== undefined && fault.attempt !== request.attempt) return false;
  if (fault.times === undefined) return true;
  const key = JSON.stringify([request.capture_key, request.thread_id, request.step]);
  const before = struck.get(key) ?? 0;
  if (before >= fault.times) return false;
  struck.set(key, before + 1);
  const oldest = struck.keys().next();
  if (struck.size > MAX_COUNTED_FAULTS && oldest.done === false) struck.delete(oldest.value);
  return true;
}

function statusOf(fault: Fault): number | null {
  return fault.kind === "hang" || fault.kind === "close" ? null : fault.kind === "status" ? fault.status : 200;
}

function* reply(id: string, current: Step, request: ModelRequest, usage: Usage): Generator<StreamEvent> {
  yield created(id, request.body.model);
  yield* itemEvents(current.reply, request);
  yield completed(id, usage);
}

type StreamFault = Exclude<Fault, { kind: "hang" | "close" | "status" }>;

/** The stream up to the fault. */
function* broken(id: string, fault: StreamFault, request: ModelRequest, usage: Usage): Generator<StreamEvent> {
  yield created(id, request.body.model);
  yield* itemEvents(fault.after, request);
  if (fault.kind === "cut") yield* halfMessage(fault.after.length);
  if (fault.kind === "incomplete") yield incomplete(id, fault.reason, usage);
  if (fault.kind === "failed") yield failed(id, fault.code, fault.message);
}

function respond(response: ServerResponse, status: number, body: string, headers: Record<string, string> = {}): void {
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(body);
}

/** Ends early when the client is gone. */
async function pause(ms: number, response: ServerResponse): Promise<void> {
  if (ms === 0) return;
  const gone = new AbortController();
  const abort = (): void => gone.abort();
  response.once("close", abort);
  await sleep(ms, undefined, { signal: gone.signal }).catch(() => undefined);
  response.off("close", abort);
}

/** Without the fields that are there but undefined, which would hide a default. */
function defined(usage: Partial<Record<keyof Usage, number | undefined>> = {}): Partial<Usage> {
  return Object.fromEntries(Object.entries(usage).filter(([, tokens]) => tokens !== undefined));
}

function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
