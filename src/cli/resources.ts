// SPDX-License-Identifier: Apache-2.0
import type { Settings } from "../config/settings.ts";
import { RollcallError } from "../errors.ts";
import { resourcesUrl, type ResourcesLimits, type ResourcesServer } from "../resources/server.ts";

/** The resources server of a run; null = it has none. Throws RollcallError for one that cannot be used. */
export function resourcesServerOf({ resources }: Settings): ResourcesServer | null {
  const { url, name, protocol, tool_transports } = resources;
  if (url === undefined) return null;
  if (tool_transports.includes("direct_http"))
    throw new RollcallError(
      "resources_transport",
      "resources.tool_transports: Codex cannot call tools over direct_http; expected mcp, or none",
    );
  return { url: resourcesUrl(url), name, protocol, mcp: tool_transports.includes("mcp") };
}

export function resourcesLimitsOf({ resources }: Settings): ResourcesLimits {
  return {
    max_sessions: resources.max_sessions,
    max_failures: resources.max_failures,
    verify_tries: resources.verify_tries,
    seed_timeout_ms: resources.seed_timeout_seconds * 1_000,
    verify_timeout_ms: resources.verify_timeout_seconds * 1_000,
    close_timeout_ms: resources.close_timeout_seconds * 1_000,
    max_answer_bytes: resources.max_answer_mb * 1024 * 1024,
    unreachable_ms: resources.unreachable_seconds * 1_000,
  };
}
