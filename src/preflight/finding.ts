// SPDX-License-Identifier: Apache-2.0
import type { CauseCode } from "../contract/failure.ts";

/** How far the conversation with a server had come. */
export type PreflightPhase = "connect" | "initialize" | "tools/list";

/**
 * Nobody there, or a server that cannot serve now | 401 or 403 | no answer in time | an answer that is not MCP's, or an error
 * in MCP's own form | no tools at all | an expected tool is not among them | a name that the model server would refuse.
 */
type PreflightCase = "unreachable" | "refused" | "no_reply" | "protocol" | "empty_list" | "tool_missing" | "tool_name_refused";

export interface Said {
  text: string;
  startsMidStream?: boolean;
  endsAtCut?: boolean;
}

/** Why a server is not usable. Not redacted: `said` is the server's own text and may repeat its token. */
export interface Finding {
  phase: PreflightPhase;
  case: PreflightCase;
  /** In our words. */
  what: string;
  /** In others' words, and where the text was cut out of a longer one. */
  said: Said | null;
}

/** What a check found: the names of the server's tools, or why it is not usable. */
export type ServerCheck = { tools: string[] } | { finding: Finding };

const CAUSES: Record<PreflightCase, CauseCode> = {
  unreachable: "mcp_server_unreachable",
  refused: "mcp_server_auth",
  no_reply: "mcp_startup_timeout",
  protocol: "mcp_server_protocol",
  empty_list: "mcp_tools_missing",
  tool_missing: "mcp_tools_missing",
  tool_name_refused: "mcp_tools_missing",
};

/** The cause that the result holds; the same as for what Codex itself says of such a server. */
export function causeOf(finding: Finding): CauseCode {
  return CAUSES[finding.case];
}
