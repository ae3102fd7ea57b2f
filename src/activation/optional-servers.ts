// SPDX-License-Identifier: Apache-2.0
import { isUsableServerName } from "../contract/grant.ts";
import type { ObservationGap, ToolCallRecord } from "../contract/observation.ts";
import type { Granted } from "./preflight.ts";

const MAX_REASON = 600;

/**
 * What is known of optional servers after a turn. Codex says nothing of one that did not connect but a line of stderr, and
 * not even that for a hang or a JSON-RPC error (0.144.4 and 0.171.0): then its state is unknown. A server of which a
 * call succeeded was there; so was one that answered before the session, if nothing else is said. Pure; `stderr` is redacted,
 * and so must `redact` the URLs that are looked for in it.
 */
export function optionalServerGaps(
  { grants, checked }: Pick<Granted, "grants" | "checked">,
  calls: readonly ToolCallRecord[],
  stderr: string,
  redact: (text: string) => string,
): ObservationGap[] {
  const servers = grants.flatMap((grant) => (grant.type === "mcp" && isUsableServerName(grant.name) ? [grant] : []));
  const trouble = stderr.split("\n").filter((line) => line.includes("rmcp::transport::worker"));
  return servers
    .filter((grant) => !grant.required && !calls.some((call) => call.server_name === grant.name && call.status === "completed"))
    .flatMap(({ name, connection }): ObservationGap[] => {
      const url = connection.transport === "streamable_http" ? redact(connection.url) : null;
      const told = servers.length === 1 ? trouble.at(-1) : trouble.findLast((line) => url !== null && line.includes(url));
      if (told !== undefined) {
        return [{ code: "mcp_server_unavailable", detail: JSON.stringify({ server_name: name, reason: told.slice(0, MAX_REASON) }) }];
      }
      return checked.has(name) ? [] : [{ code: "mcp_server_state_unknown", detail: JSON.stringify({ server_name: name }) }];
    });
}
