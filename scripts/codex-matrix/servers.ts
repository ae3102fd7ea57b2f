// SPDX-License-Identifier: Apache-2.0
import { randomBytes } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { startBrokenServer, type BrokenKind, type BrokenServerOptions } from "../../examples/stand-ins/broken-server.ts";
import { startModelServer } from "../../examples/stand-ins/model-server.ts";
import { OFFICE_TOOLS } from "../../examples/stand-ins/office-tool-list.ts";
import { startOfficeTools, type OfficeCall } from "../../examples/stand-ins/office-tools.ts";
import { RequestLog } from "../../examples/stand-ins/request-log.ts";
import type { ModelServerLife } from "./scenario.ts";

const SLOW_CALL_MS = 3_000;
const SLOW_LIST_MS = 5_000;
const AWAY_MS = 10_000;

const FORGOTTEN = "Bad Request: No valid session ID provided";
const ALL_TOOLS = OFFICE_TOOLS.map(({ name }) => name);

/** What is wrong with each tool server that is not good, and in which request. */
const BROKEN: Readonly<Record<string, { kind: BrokenKind; options?: BrokenServerOptions }>> = {
  refuses: { kind: "refuses" },
  "initialize hangs": { kind: "hang" },
  "initialize 401": { kind: "status" },
  "web page": { kind: "html" },
  "tools/list hangs": { kind: "hang", options: { at: "tools/list" } },
  "tools/list 401": { kind: "status", options: { at: "tools/list" } },
  "tools/list 500": { kind: "status", options: { at: "tools/list", status: 500 } },
  "tools/list closed": { kind: "close", options: { at: "tools/list" } },
  "tools/list error": { kind: "jsonrpc_error", options: { at: "tools/list" } },
  "tools/list nonsense": { kind: "bad_result", options: { at: "tools/list" } },
  "no tools": { kind: "status", options: { at: "tools/call", tools: [] } },
  "tools/call 401": { kind: "status", options: { at: "tools/call", tools: ALL_TOOLS } },
  "forgets sessions (400)": { kind: "session_lost", options: { at: "tools/call", tools: ALL_TOOLS, status: 400, message: FORGOTTEN } },
  "forgets sessions (200)": { kind: "session_lost", options: { at: "tools/call", tools: ALL_TOOLS, status: 200, message: FORGOTTEN } },
};

/** A call as the tool server counted it. */
export type ServerCall = OfficeCall & { server: string };

export interface Servers {
  readonly modelKey: string;
  /** Of all model servers together. */
  readonly log: RequestLog;
  /** URL of a tool server by its name. */
  toolServer(name: string): string;
  token(session: string): string;
  /** Calls under a session's token. */
  callsOf(session: string): ServerCall[];
  /** Base URL of a model server with this life, one for each session but for "works". */
  modelServer(life: ModelServerLife): Promise<string>;
  close(): Promise<void>;
}

/** Every server that the scenarios need. The caller closes them. */
export async function startServers(): Promise<Servers> {
  const modelKey = `matrix-${randomBytes(8).toString("hex")}`;
  const secret = randomBytes(16).toString("hex"); // one for all, so that one token does for a session
  const log = new RequestLog({ maxRequests: 1 });
  const model = { apiKey: modelKey, log, usage: { cache_write_input_tokens: 50 } };
  const closing: { close(): Promise<void> }[] = [];
  const kept = <S extends { close(): Promise<void> }>(server: S): S => (closing.push(server), server);
  const good = {
    office: kept(await startOfficeTools({ secret })),
    archive: kept(await startOfficeTools({ secret })),
    slow: kept(await startOfficeTools({ secret, delayMs: () => SLOW_CALL_MS })),
  };
  const urls = new Map(Object.entries(good).map(([name, { url }]) => [name, url]));
  for (const [name, { kind, options }] of Object.entries(BROKEN)) urls.set(name, kept(await startBrokenServer(kind, options)).url);
  const late = { upstream: good.archive.url, ms: SLOW_LIST_MS };
  urls.set("tools/list slow", kept(await startBrokenServer("slow", { at: "tools/list", late })).url);
  const works = kept(await startModelServer(model));

  /** Ends every connection when one answer more is wanted than it gives, and comes back after a while, or not. */
  async function mortal(answers: number, backAfterMs: number | null): Promise<string> {
    let gone = false;
    const first = await startModelServer({
      ...model,
      scriptFor(request) {
        if (request.step >= answers && !gone) {
          gone = true;
          void first.close().then(() => (backAfterMs === null ? undefined : comeBack(backAfterMs)));
        }
        return undefined;
      },
    });
    const comeBack = async (ms: number): Promise<void> => {
      await delay(ms);
      kept(await startModelServer({ ...model, port: Number(new URL(first.url).port) }));
    };
    return kept(first).captureBaseUrl;
  }

  return {
    modelKey,
    log,
    toolServer(name) {
      const url = urls.get(name);
      if (url === undefined) throw new Error(`servers.ts has no tool server ${name}`);
      return url;
    },
    token: (session) => good.office.mintToken(session),
    callsOf: (session) =>
      Object.entries(good).flatMap(([server, { calls }]) =>
        calls.filter(({ session_id }) => session_id === session).map((call) => ({ ...call, server })),
      ),
    async modelServer(life) {
      if (life === "works") return works.captureBaseUrl;
      if (life === "its own") return kept(await startModelServer(model)).captureBaseUrl;
      return mortal(life === "gone at the first call" ? 0 : 1, life === "away for 10 s" ? AWAY_MS : null);
    },
    close: async () => void (await Promise.all(closing.map((server) => server.close()))),
  };
}
