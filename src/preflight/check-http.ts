// SPDX-License-Identifier: Apache-2.0
import { setTimeout as sleep } from "node:timers/promises";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { McpGrant } from "../contract/grant.ts";
import { Bound, type CheckBound } from "../host/bound.ts";
import { boundedFetch } from "./bounded-fetch.ts";
import { listTools } from "./converse.ts";
import { diagnose, mayComeUp, notReady, noReply } from "./diagnose.ts";
import type { Finding, PreflightPhase, ServerCheck } from "./finding.ts";

type HttpConnection = Extract<McpGrant["connection"], { transport: "streamable_http" }>;

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 1_000;
/** Good manners towards servers that keep sessions; they forget them anyway. */
const GOODBYE_MS = 500;

/**
 * Connects to a server as Codex will, with the grant's headers. One that is about to come up (connection refused, 503)
 * is tried again until the bound. Never rejects but with the signal's reason.
 */
export async function checkHttp(connection: HttpConnection, given: CheckBound): Promise<ServerCheck> {
  const bound = new Bound(given);
  try {
    return await tryUntil(bound.signal, connection, given);
  } finally {
    bound.end();
  }
}

async function tryUntil(bound: AbortSignal, connection: HttpConnection, { seconds, signal }: CheckBound): Promise<ServerCheck> {
  let down: Finding | null = null;
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(2 * pause, LONGEST_PAUSE_MS)) {
    let phase = "connect" as PreflightPhase;
    const begun = performance.now();
    try {
      return { tools: await once(connection, bound, (reached) => (phase = reached)) };
    } catch (error) {
      signal.throwIfAborted();
      if (bound.aborted) {
        // A try that the bound cut off is what was found only where it had the greater part of the time.
        const cutOff = phase !== "tools/list" && performance.now() - begun < seconds * 500;
        return { finding: cutOff && down !== null ? down : noReply(phase, seconds) };
      }
      const finding = diagnose(error, phase);
      if (!mayComeUp(error)) return { finding };
      down = notReady(finding, seconds);
    }
    await sleep(pause, undefined, { signal: bound }).catch(() => undefined);
  }
}

async function once(connection: HttpConnection, bound: AbortSignal, onPhase: (phase: PreflightPhase) => void): Promise<string[]> {
  bound.throwIfAborted();
  const { url, headers } = target(connection);
  const transport = new StreamableHTTPClientTransport(url, { requestInit: { headers }, fetch: boundedFetch });
  try {
    return await listTools(transport, bound, onPhase);
  } finally {
    await goodbye(transport.sessionId, url, headers);
  }
}

/** Closing aborted the transport's own requests, hence not its terminateSession(). */
async function goodbye(sessionId: string | undefined, url: URL, headers: Record<string, string>): Promise<void> {
  if (sessionId === undefined) return;
  try {
    const signal = AbortSignal.timeout(GOODBYE_MS);
    const response = await boundedFetch(url, { method: "DELETE", headers: { ...headers, "mcp-session-id": sessionId }, signal });
    await response.body?.cancel();
  } catch {
    // it may not know sessions' ends
  }
}

/** fetch takes no user info in a URL; Codex sends it as basic authorization. */
function target({ url, headers }: HttpConnection): { url: URL; headers: Record<string, string> } {
  const bare = new URL(url);
  const { username, password } = bare;
  if (username === "" && password === "") return { url: bare, headers };
  bare.username = bare.password = "";
  const userInfo = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  const given = Object.keys(headers).some((name) => name.toLowerCase() === "authorization");
  return { url: bare, headers: given ? headers : { ...headers, Authorization: `Basic ${Buffer.from(userInfo).toString("base64")}` } };
}
