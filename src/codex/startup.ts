// SPDX-License-Identifier: Apache-2.0
import { gravestCause, type CauseCode } from "../contract/failure.ts";
import type { CodexProfile, ServerReason } from "./profile.ts";
import { TRANSPORT } from "./profiles/texts.ts";

export interface StartupCause {
  /** Of several servers, the gravest of their causes. */
  cause_code: CauseCode;
  /** The granted servers it names, each with its own cause. */
  servers: { name: string; cause: CauseCode }[];
}

/**
 * Only at the beginning of a line, and its first place: lines before it quote a server's answer escaped, on one line;
 * what follows may hold line breaks of the answer.
 */
const SERVERS_FAILED =
  /^(?:\S+ ERROR codex_core::session: |Error: thread\/start: )(?:[^\n]*?: )?required MCP servers failed to initialize: /m;
/**
 * Why Codex ended before a turn, from its stderr (0.144.4 and 0.171.0; redacted or not). `unknown` rather than a guess:
 * only Codex's own words at their own places count, since a server's answer is quoted in between. Pure.
 */
export function startupCause(stderr: string, grantedServers: readonly string[], { serverReasons }: CodexProfile): StartupCause {
  const line = SERVERS_FAILED.exec(stderr);
  if (line === null) return { cause_code: launchCause(stderr), servers: [] };
  const servers = serversIn(stderr.slice(line.index + line[0].length), grantedServers, serverReasons);
  return { cause_code: gravestCause(servers.map(({ cause }) => cause)), servers };
}

/** `<name>: <reason>[; <name>: <reason>]`, split only where a granted server's name and a known beginning stand. */
function serversIn(text: string, grantedServers: readonly string[], reasons: readonly ServerReason[]): StartupCause["servers"] {
  const starts = grantedServers
    .map((name) => ({ name, at: placeOf(text, `${name}: `, reasons) }))
    .filter(({ at }) => at !== -1)
    .sort((one, other) => one.at - other.at);
  return starts.map(({ name, at }, index) => ({
    name,
    cause: serverCause(text.slice(at + name.length + 2, starts[index + 1]?.at), reasons),
  }));
}

/** The first place of a server's reason: at the very beginning, or after the "; " between two servers; -1 when nowhere. */
function placeOf(text: string, prefix: string, reasons: readonly ServerReason[]): number {
  const wanted = reasons.map(({ begins }) => prefix + begins);
  if (wanted.some((start) => text.startsWith(start))) return 0;
  const places = wanted.map((start) => text.indexOf(`; ${start}`)).filter((at) => at !== -1);
  return places.length === 0 ? -1 : Math.min(...places) + 2;
}

function serverCause(text: string, reasons: readonly ServerReason[]): CauseCode {
  const reason = reasons.find(({ begins }) => text.startsWith(begins));
  if (reason === undefined) return "unknown";
  const rest = text.slice(reason.begins.length).replace(TRANSPORT, "");
  return reason.meaning.find(([fits]) => fits.test(rest))?.[1] ?? "unknown";
}

/** Failures that have nothing to do with a server. */
function launchCause(stderr: string): CauseCode {
  if (/^Error loading config\.toml:/m.test(stderr) || /^Error: Model provider `/m.test(stderr)) return "config_invalid";
  if (/^error: (unexpected argument|the argument|unrecognized subcommand) /m.test(stderr)) return "config_invalid";
  if (/^bwrap: execvp .*: No such file or directory$/m.test(stderr)) return "binary_missing";
  return "unknown";
}
