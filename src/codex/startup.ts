// SPDX-License-Identifier: Apache-2.0
import type { CodexProfile } from "./profile.ts";
import { gravestCause, type CauseCode } from "../contract/failure.ts";

export interface StartupCause {
  cause_code: CauseCode;
  /** The granted servers it names. */
  server_names: string[];
}

/**
 * Only at the beginning of a line, and its first place: lines before it quote a server's answer escaped, on one line;
 * what follows may hold line breaks of the answer.
 */
const SERVERS_FAILED =
  /^(?:\S+ ERROR codex_core::session: |Error: thread\/start: )(?:[^\n]*?: )?required MCP servers failed to initialize: /m;
/** How Codex begins the reason of one server; what follows may be the server's own words. */
const REASON_BEGINNINGS = [
  "handshaking with MCP server failed: ",
  "timed out handshaking with MCP server after ",
  "Invalid MCP server name ",
  "Environment variable ",
  "No such file or directory",
  "Permission denied",
];

/**
 * Why Codex ended before a turn, from its stderr (0.144.4 and 0.171.0; redacted or not). `unknown` rather than a guess:
 * only Codex's own words at their own places count, since a server's answer is quoted in between. Pure.
 */
export function startupCause(stderr: string, grantedServers: readonly string[], _profile: CodexProfile): StartupCause {
  const line = SERVERS_FAILED.exec(stderr);
  if (line !== null) {
    const reasons = serverReasons(stderr.slice(line.index + line[0].length), grantedServers);
    return { cause_code: gravestCause(reasons.map(({ reason }) => serverCause(reason))), server_names: reasons.map(({ name }) => name) };
  }
  return { cause_code: launchCause(stderr), server_names: [] };
}

/** `<name>: <reason>[; <name>: <reason>]`, split only where a granted server's name and a known beginning stand. */
function serverReasons(text: string, grantedServers: readonly string[]): { name: string; reason: string }[] {
  const starts = grantedServers
    .map((name) => ({ name, at: placeOf(text, `${name}: `) }))
    .filter(({ at }) => at !== -1)
    .sort((one, other) => one.at - other.at);
  return starts.map(({ name, at }, index) => ({ name, reason: text.slice(at + name.length + 2, starts[index + 1]?.at) }));
}

/** The first place of a server's reason: at the very beginning, or after the "; " between two servers; -1 when nowhere. */
function placeOf(text: string, prefix: string): number {
  const wanted = REASON_BEGINNINGS.map((beginning) => prefix + beginning);
  if (wanted.some((start) => text.startsWith(start))) return 0;
  const places = wanted.map((start) => text.indexOf(`; ${start}`)).filter((at) => at !== -1);
  return places.length === 0 ? -1 : Math.min(...places) + 2;
}

function serverCause(reason: string): CauseCode {
  if (reason.startsWith("timed out handshaking")) return "mcp_startup_timeout";
  if (/^(Invalid MCP server name|Environment variable) /.test(reason)) return "config_invalid";
  if (/^(No such file|Permission denied)/.test(reason)) return "mcp_server_unreachable"; // a stdio server's program
  const handshake = /^handshaking with MCP server failed: (?:Send message error Transport \[[^\]]*\] error: )?(.*)/s.exec(reason)?.[1];
  return handshake === undefined ? "unknown" : handshakeCause(handshake);
}

function handshakeCause(text: string): CauseCode {
  const status = /^unexpected server response: HTTP (\d{3})\b/.exec(text)?.[1];
  if (status !== undefined) {
    if (status === "401" || status === "403") return "mcp_server_auth";
    return status.startsWith("5") ? "mcp_server_unreachable" : "mcp_server_protocol";
  }
  if (text.startsWith("Auth required")) return "mcp_server_auth";
  if (/^Client error: .*(url is invalid|relative URL without a base|only supports http)/.test(text)) return "config_invalid";
  if (/^(Client error: |connection closed: )/.test(text)) return "mcp_server_unreachable";
  return /^(Unexpected content type|Deserialize error|JSON-RPC error): /.test(text) ? "mcp_server_protocol" : "unknown";
}

/** Failures that have nothing to do with a server. */
function launchCause(stderr: string): CauseCode {
  if (/^Error loading config\.toml:/m.test(stderr) || /^Error: Model provider `/m.test(stderr)) return "config_invalid";
  if (/^error: (unexpected argument|the argument|unrecognized subcommand) /m.test(stderr)) return "config_invalid";
  if (/^bwrap: execvp .*: No such file or directory$/m.test(stderr)) return "binary_missing";
  return "unknown";
}
