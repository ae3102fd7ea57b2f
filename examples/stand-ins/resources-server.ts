// SPDX-License-Identifier: Apache-2.0
import { randomUUID } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { z } from "zod";
import { readBody, serveOnLoopback } from "./loopback.ts";
import { officeTools, type OfficeCall } from "./office-tools.ts";
import { closeSchema, Refused, ResourcesSessions, seedSchema, type ResourcesSession } from "./resources-sessions.ts";
import { SESSION_TOKEN_HEADER, sessionTokens } from "./session-tokens.ts";
import { collectedFiles, deliverablesDir, persist } from "./submissions.ts";

const MAX_BODY_BYTES = 64 * 1024 * 1024;
const COOKIE = "session";

/** What is wrong with one answer. lost: it did its work, and the connection ends without an answer. */
export type ResourcesFault =
  | { kind: "status"; status: number; retry_after?: string }
  | { kind: "hang" | "cut" | "lost" | "no_metadata" | "sandbox_access" | "no_reward" };

export interface ResourcesCall {
  path: "/seed_session" | "/verify" | "/close_session";
  /** Of a session that is known; else what was asked for. */
  session_id: string | null;
  rollout_id: string | null;
  capture_key: string | null;
  /** HTTP status; null = it got no answer. */
  status: number | null;
  /** Milliseconds since the epoch. */
  at: number;
  body: Record<string, unknown>;
}

export interface ResourcesServerOptions {
  /** Default 0: a free port. */
  port?: number;
  /** Signs tokens and cookies; default a random one. */
  secret?: string;
  /** The artifact directory of the run: what sessions handed in is looked up there. Absent: what they say is believed. */
  artifacts?: string;
  /** Where deliverables are kept. Absent: nowhere. */
  deliverables?: string;
  /** Scores what it is sent, whatever its session: without a cookie, too. */
  stateless?: boolean;
  /** Asked before each answer; `nth` counts the calls of this path for this rollout, from 0. */
  faultFor?: (call: { path: ResourcesCall["path"]; rollout_id: string; nth: number }) => ResourcesFault | undefined;
  /** After an answer was sent. */
  onAnswered?: (call: ResourcesCall) => void;
}

export interface ResourcesStandIn {
  /** `http://127.0.0.1:<port>`. */
  readonly url: string;
  /** In the order in which they were answered. */
  readonly calls: readonly ResourcesCall[];
  readonly toolCalls: readonly OfficeCall[];
  /** Sessions that were seeded and not closed. */
  openSessions(): string[];
  /** Everything that must not be seen anywhere: tokens and cookies that it gave out. */
  readonly secrets: readonly string[];
  close(): Promise<void>;
}

/**
 * A resources server as Gym's are, for office tasks: seeds and closes sessions, gives each a token for its four tools over MCP,
 * and scores what was handed in: 1 when finish was called and every file that it names was collected, else 0. The caller closes it.
 */
export async function startResourcesServer(options: ResourcesServerOptions = {}): Promise<ResourcesStandIn> {
  const tools = officeTools(options.secret === undefined ? {} : { secret: options.secret });
  const context: Context = {
    options,
    tools,
    cookies: sessionTokens(options.secret),
    sessions: new ResourcesSessions(),
    calls: [],
    asked: new Map(),
    secrets: [],
  };
  const server = await serveOnLoopback((request, response) => {
    if (request.url === "/mcp" || request.method !== "POST") return tools.serve(request, response);
    answer(request, response, context).catch((error: unknown) => response.destroy(error as Error));
  }, options.port);
  return {
    url: server.origin,
    calls: context.calls,
    toolCalls: tools.calls,
    openSessions: () => context.sessions.openIds,
    secrets: context.secrets,
    close: () => server.close(),
  };
}

interface Context {
  options: ResourcesServerOptions;
  tools: ReturnType<typeof officeTools>;
  cookies: ReturnType<typeof sessionTokens>;
  sessions: ResourcesSessions;
  calls: ResourcesCall[];
  asked: Map<string, number>;
  secrets: string[];
}

async function answer(request: IncomingMessage, response: ServerResponse, context: Context): Promise<void> {
  const text = (await readBody(request, MAX_BODY_BYTES)) ?? "{}";
  const path = request.url as ResourcesCall["path"];
  const body = JSON.parse(text) as Record<string, unknown>;
  const call: ResourcesCall = {
    path,
    session_id: null,
    rollout_id: rolloutIn(body),
    capture_key: null,
    status: null,
    at: Date.now(),
    body,
  };
  const own = sessionOf(request, context);
  if (own !== null && path !== "/seed_session") call.rollout_id = own.rolloutId;
  const fault = faultOf(call, context);
  const record = (status: number | null): void => {
    context.calls.push({ ...call, status });
    context.options.onAnswered?.({ ...call, status });
  };
  if (fault?.kind === "hang") return record(null);
  if (fault?.kind === "status") {
    response.writeHead(fault.status, fault.retry_after === undefined ? {} : { "retry-after": fault.retry_after });
    response.end(JSON.stringify({ detail: `told to fail; it came with ${request.headers.cookie ?? "no cookie"}` }));
    return record(fault.status);
  }
  let status = 200;
  let said: object;
  try {
    said = await serve(path, body, own, { call, context, response, fault: fault?.kind ?? null });
  } catch (error) {
    status = error instanceof Refused ? error.status : error instanceof z.ZodError ? 422 : 500;
    said = { detail: error instanceof Error ? error.message : String(error) };
  }
  if (fault?.kind === "lost") {
    response.destroy();
    return record(null);
  }
  const json = JSON.stringify(said);
  response.writeHead(status, { "content-type": "application/json", "content-length": Buffer.byteLength(json) });
  if (fault?.kind === "cut") {
    response.write(json.slice(0, Math.ceil(json.length / 2)), () => response.destroy());
    return record(null);
  }
  response.end(json, () => record(status));
}

interface Asked {
  call: ResourcesCall;
  context: Context;
  response: ServerResponse;
  fault: ResourcesFault["kind"] | null;
}

async function serve(path: string, body: Record<string, unknown>, own: ResourcesSession | null, asked: Asked): Promise<object> {
  switch (path) {
    case "/seed_session":
      return seed(body, asked);
    case "/verify":
      if (own === null && asked.context.options.stateless === true)
        return { ...body, reward: 0, deliverables_dir: null, submitted: [], missing: [] };
      if (own === null) throw new Refused(409, "no cookie of an open session came with the call");
      return verify(body, own, asked);
    case "/close_session": {
      const close = closeSchema.parse(body);
      asked.call.session_id = close.resources_session_id;
      asked.context.sessions.close(close);
      return { resources_session_id: close.resources_session_id };
    }
    default:
      throw new Refused(404, "there is no such route");
  }
}

function seed(body: Record<string, unknown>, { call, context, response, fault }: Asked): object {
  const typed = "resources_session_id" in body;
  const session = typed ? context.sessions.seed(seedSchema.parse(body)) : rowSession(body, context);
  call.session_id = session.id;
  call.capture_key = session.captureKey;
  const token = context.tools.mintToken(session.id);
  const cookie = context.cookies.mint(session.id);
  context.secrets.push(token, cookie);
  response.setHeader("set-cookie", `${COOKIE}=${cookie}; Path=/; HttpOnly`);
  const tools =
    fault === "no_metadata"
      ? null
      : { server_name: "office", url_path: "/mcp", transport: "http", headers: { [SESSION_TOKEN_HEADER]: token } };
  const access =
    fault === "sandbox_access" ? { connection: { kind: "direct", provider_config_ref: "x", descriptor: {} }, workdir: "/root" } : null;
  return typed ? { resources_session_id: session.id, resources_tools: tools, sandbox_access: access } : { mcp: tools };
}

function rowSession(row: Record<string, unknown>, { sessions }: Context): ResourcesSession {
  const taskId = typeof row["task_id"] === "string" ? row["task_id"] : "unknown";
  const session = { id: randomUUID(), captureKey: null, rolloutId: rolloutIn(row) ?? taskId, taskId };
  sessions.seedRow(session);
  return session;
}

async function verify(body: Record<string, unknown>, session: ResourcesSession, { call, context, fault }: Asked): Promise<object> {
  context.sessions.get(session.id); // open still
  call.session_id = session.id;
  call.capture_key = session.captureKey;
  const { artifacts, deliverables } = context.options;
  // The last call that worked counts, also where it gives the task up.
  const last = context.tools.calls.findLast(
    ({ session_id, tool, outcome }) => session_id === session.id && outcome === "ok" && tool.endsWith("finish"),
  );
  const finish = last?.tool === "finish" ? last.args : null;
  const paths = finish === null ? [] : z.array(z.string()).catch([]).parse(finish["paths"]);
  const collected = artifacts === undefined || session.captureKey === null ? null : await collectedFiles(artifacts, session.captureKey);
  const found = paths.map((path) => ({ path, file: collected?.find(({ source }) => source === path)?.file }));
  const missing = collected === null ? [] : found.flatMap(({ path, file }) => (file === undefined ? [path] : []));
  let directory: string | null = null;
  if (deliverables !== undefined) {
    directory = deliverablesDir(deliverables, session.taskId, session.rolloutId);
    await persist(
      directory,
      found.flatMap(({ file }) => file ?? []),
      finish,
    );
  }
  if (fault === "no_reward") return body;
  return { ...body, reward: finish !== null && missing.length === 0 ? 1 : 0, deliverables_dir: directory, submitted: paths, missing };
}

function sessionOf(request: IncomingMessage, { cookies, sessions }: Context): ResourcesSession | null {
  const value = new RegExp(`(?:^|; )${COOKIE}=([^;]+)`).exec(request.headers.cookie ?? "")?.[1];
  const known = value === undefined ? null : cookies.verify(value);
  if (known === null || !sessions.openIds.includes(known.sessionId)) return null;
  return sessions.get(known.sessionId);
}

function rolloutIn(body: Record<string, unknown>): string | null {
  const episode = z.object({ episode_id: z.object({ rollout_id: z.string() }) }).safeParse(body);
  if (episode.success) return episode.data.episode_id.rollout_id;
  return typeof body["_ng_rollout_id"] === "string" ? body["_ng_rollout_id"] : typeof body["task_id"] === "string" ? body["task_id"] : null;
}

function faultOf({ path, rollout_id }: ResourcesCall, { options, asked }: Context): ResourcesFault | undefined {
  const key = `${path} ${rollout_id}`;
  const nth = asked.get(key) ?? 0;
  asked.set(key, nth + 1);
  return options.faultFor?.({ path, rollout_id: rollout_id ?? "", nth });
}
