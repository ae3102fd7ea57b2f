// SPDX-License-Identifier: Apache-2.0
import { setTimeout as sleep } from "node:timers/promises";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { McpGrant } from "../contract/grant.ts";
import { Bound, type CheckBound } from "../host/bound.ts";
import { boundedFetch, type Fetch } from "./bounded-fetch.ts";
import { listTools } from "./converse.ts";
import { diagnose, mayComeUp, notReady, noReply, throughProxy } from "./diagnose.ts";
import type { Finding, PreflightPhase, ServerCheck } from "./finding.ts";
import { proxyOf, type ProxyEnvironment } from "./proxy.ts";

type HttpConnection = Extract<McpGrant["connection"], { transport: "streamable_http" }>;

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 1_000;
/** Good manners towards servers that keep sessions; they forget them anyway. */
const GOODBYE_MS = 500;

/**
 * Connects to a server as Codex will, with the grant's headers and through the proxy that `env`, its environment, names. One that is about to come up (connection refused, 503)
 * is tried again until the bound. Never rejects but with the signal's reason.
 */
export async function checkHttp(connection: HttpConnection, env: ProxyEnvironment, given: CheckBound): Promise<ServerCheck> {
  const bound = new Bound(given);
  const proxy = proxyOf(new URL(connection.url), env);
  const way = await wayThrough(proxy);
  try {
    const check = await tryUntil(bound.signal, { connection, send: boundedFetch(way.send) }, given);
    return "finding" in check && proxy !== null ? { finding: throughProxy(check.finding, proxy) } : check;
  } finally {
    bound.end();
    await way.close();
  }
}

/** Never as this process would go: what its own variables or NODE_USE_ENV_PROXY say is not said to Codex. */
async function wayThrough(proxy: URL | null): Promise<{ send: Fetch; close: () => Promise<void> }> {
  const { Agent, fetch, ProxyAgent } = await import("undici");
  // Plain requests are asked of the proxy, as Codex does it; only https goes through a tunnel.
  const dispatcher = proxy === null ? new Agent() : new ProxyAgent({ uri: proxy.href, proxyTunnel: false });
  const send = ((url: string | URL, init?: object) => fetch(url, { ...init, dispatcher })) as unknown as Fetch;
  return { send, close: () => dispatcher.destroy() };
}

interface Server {
  connection: HttpConnection;
  send: Fetch;
}

async function tryUntil(bound: AbortSignal, server: Server, { seconds, signal }: CheckBound): Promise<ServerCheck> {
  let down: Finding | null = null;
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(2 * pause, LONGEST_PAUSE_MS)) {
    let phase = "connect" as PreflightPhase;
    const begun = performance.now();
    try {
      return { tools: await once(server, bound, (reached) => (phase = reached)) };
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

async function once({ connection, send }: Server, bound: AbortSignal, onPhase: (phase: PreflightPhase) => void): Promise<string[]> {
  bound.throwIfAborted();
  const { url, headers } = target(connection);
  const transport = new StreamableHTTPClientTransport(url, { requestInit: { headers }, fetch: send });
  try {
    return await listTools(transport, bound, onPhase);
  } finally {
    await goodbye(send, transport.sessionId, url, headers);
  }
}

/** Closing aborted the transport's own requests, hence not its terminateSession(). */
async function goodbye(send: Fetch, sessionId: string | undefined, url: URL, headers: Record<string, string>): Promise<void> {
  if (sessionId === undefined) return;
  try {
    const signal = AbortSignal.timeout(GOODBYE_MS);
    const response = await send(url, { method: "DELETE", headers: { ...headers, "mcp-session-id": sessionId }, signal });
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
