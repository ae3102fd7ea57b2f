// SPDX-License-Identifier: Apache-2.0
import { mcp } from "../../../examples/stand-ins/script.ts";
import { finish, ONE, report, steps, work, type Grant, type Scenario } from "../scenario.ts";

const TOOLS_MAY = ["agent_startup_failed", "mcp_server_unavailable", "agent_transcript_unavailable"] as const;

/** A required server that keeps the session from starting, not looked at before: what Codex itself says of it decides. */
function keepsFromStarting(what: string, server: string, ends: string): Scenario {
  return {
    name: `required server: ${what}`,
    kinds: ONE,
    script: work(),
    grants: [{ name: "office", server }],
    codex: { mcp_startup_timeout_seconds: 4 },
    ends: `failed ${ends}`,
    names: ["office"],
    gaps: ["agent_startup_failed"],
    may: TOOLS_MAY,
  };
}

const two: readonly Grant[] = [
  { name: "office", server: "initialize 401" },
  { name: "archive", server: "tools/list hangs" },
];

export const startup: readonly Scenario[] = [
  keepsFromStarting("nobody listens", "refuses", "mcp_server_unreachable grant"),
  keepsFromStarting("initialize hangs", "initialize hangs", "mcp_startup_timeout grant"),
  keepsFromStarting("initialize 401", "initialize 401", "mcp_server_auth grant final"),
  keepsFromStarting("a web page", "web page", "mcp_server_protocol grant"),
  keepsFromStarting("tools/list hangs", "tools/list hangs", "mcp_startup_timeout grant"),
  keepsFromStarting("tools/list 401", "tools/list 401", "mcp_server_auth grant final"),
  keepsFromStarting("tools/list 500", "tools/list 500", "mcp_server_unreachable grant"),
  keepsFromStarting("tools/list closed", "tools/list closed", "mcp_server_unreachable grant"),
  keepsFromStarting("tools/list error", "tools/list error", "mcp_server_protocol grant"),
  keepsFromStarting("tools/list nonsense", "tools/list nonsense", "mcp_server_protocol grant"),
  {
    ...keepsFromStarting("two that fail differently", "", "mcp_server_auth grant final"),
    grants: two,
    names: ["office", "archive"],
  },
  {
    name: "required server: no tools",
    kinds: ONE,
    script: steps(report()),
    grants: [{ name: "office", server: "no tools" }],
    ends: "completed grant",
    gaps: ["required_tool_not_offered"],
  },
  {
    name: "optional server: nobody listens",
    kinds: ONE,
    script: work(),
    grants: [{ name: "office" }, { name: "archive", server: "refuses", required: false }],
    ends: "completed",
    gaps: ["mcp_server_unavailable"],
  },
  {
    name: "optional server: tools/list takes 5 s",
    kinds: ONE,
    script: steps(mcp("archive", "web_search", { query: "rates" }), report(), finish()),
    grants: [{ name: "office" }, { name: "archive", server: "tools/list slow", required: false }],
    ends: "completed",
  },
  {
    name: "a key that Codex does not know",
    kinds: ONE,
    script: work(),
    codex: { extra_config: { no_such_key: true } },
    ends: "failed config_invalid infrastructure final",
    gaps: ["agent_startup_failed"],
    may: TOOLS_MAY,
  },
];
