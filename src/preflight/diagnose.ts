// SPDX-License-Identifier: Apache-2.0
import { StreamableHTTPError } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { McpError } from "@modelcontextprotocol/sdk/types.js";
import { messageOf } from "../errors.ts";
import { HttpAnswer } from "./bounded-fetch.ts";
import type { Finding, PreflightPhase } from "./finding.ts";

/** What is seen of a server, or of the proxy before it, that is about to come up. */
const COMING_UP_ERRNO = new Set(["ECONNREFUSED", "ECONNRESET", "EHOSTUNREACH", "EAI_AGAIN", "UND_ERR_SOCKET", "UND_ERR_CONNECT_TIMEOUT"]);
const COMING_UP_STATUS = new Set([502, 503, 504]);

/** True when the same request may succeed in a moment. */
export function mayComeUp(thrown: unknown): boolean {
  if (thrown instanceof HttpAnswer) return COMING_UP_STATUS.has(thrown.status);
  return COMING_UP_ERRNO.has(networkError(thrown)?.code ?? "");
}

/** What an error in the conversation with a server means; sorted as Codex's own words are (codex/startup.ts). Pure. */
export function diagnose(thrown: unknown, phase: PreflightPhase): Finding {
  if (thrown instanceof HttpAnswer) return httpFinding(thrown, phase);
  const network = networkError(thrown);
  if (network !== null) {
    const { code, message } = network;
    return {
      phase: phase === "initialize" ? "connect" : phase,
      case: "unreachable",
      what: code === "ECONNREFUSED" ? "the connection was refused" : "the connection failed",
      said: { text: message === "" ? code : message },
    };
  }
  if (thrown instanceof McpError) return protocol(phase, "it answered with an error", thrown.message);
  if (thrown instanceof StreamableHTTPError) return protocol(phase, "it did not answer as an MCP server", thrown.message);
  if (thrown instanceof SyntaxError) return protocol(phase, "its answer is not JSON", thrown.message);
  if (thrown instanceof Error && thrown.name.includes("ZodError")) return protocol(phase, "its answer is not what MCP prescribes", null);
  return protocol(phase, "the conversation failed", messageOf(thrown));
}

/** No answer within the bound. */
export function noReply(phase: PreflightPhase, seconds: number): Finding {
  const request = phase === "tools/list" ? "tools/list" : "initialize";
  return { phase, case: "no_reply", what: `no answer to ${request} within ${bound(seconds)}`, said: null };
}

/** Refused until the bound. */
export function notReady(finding: Finding, seconds: number): Finding {
  return { ...finding, what: `not ready after ${bound(seconds)}: ${finding.what}` };
}

/** The proxy's name without what it may hold of secrets: which variable, people see in the session's sandbox.env. */
export function throughProxy(finding: Finding, proxy: URL): Finding {
  return { ...finding, what: `through the proxy ${proxy.protocol}//${proxy.host} of sandbox.env: ${finding.what}` };
}

function bound(seconds: number): string {
  return `${seconds} s (codex.mcp_startup_timeout_seconds)`;
}

function httpFinding({ status, body, redirect }: HttpAnswer, phase: PreflightPhase): Finding {
  if (redirect !== null)
    return protocol(phase, `it redirects (HTTP ${status}) to ${redirect}, where the grant's headers must not go; grant that URL`, null);
  const said = body.text === "" ? null : body;
  if (status === 401 || status === 403) return { phase, case: "refused", what: `it refused the grant's credentials: HTTP ${status}`, said };
  return { phase, case: status >= 500 ? "unreachable" : "protocol", what: `it answered with HTTP ${status}`, said };
}

function protocol(phase: PreflightPhase, what: string, said: string | null): Finding {
  return { phase, case: "protocol", what, said: said === null ? null : { text: said } };
}

/** The system's or undici's own error below fetch's TypeError; null when it is none. */
function networkError(thrown: unknown): { code: string; message: string } | null {
  const cause = thrown instanceof TypeError ? thrown.cause : null;
  if (!(cause instanceof Error)) return null;
  const code = "code" in cause && typeof cause.code === "string" ? cause.code : "";
  // "bad port" of fetch has no code.
  return { code, message: cause.message };
}
