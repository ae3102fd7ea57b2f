// SPDX-License-Identifier: Apache-2.0
import { RollcallError } from "../errors.ts";

/**
 * How a resources server is spoken to. `session`: sessions under ids of ours, seeded, verified and closed, as Gym's environment
 * servers do. `row`: the whole row goes to /seed_session and /verify, and only the cookie tells the session, as Gym's agents do.
 */
export const PROTOCOLS = ["session", "row"] as const;
export type Protocol = (typeof PROTOCOLS)[number];

/** One resources server, as a run names it. Holds no secret. */
export interface ResourcesServer {
  /** http or https, without a slash at the end. */
  url: string;
  /** What its tool server is called where its metadata give no name. */
  name: string;
  protocol: Protocol;
  /** Its tools are granted to each session over MCP. */
  mcp: boolean;
}

/** How rollouts behind resources servers are treated; every process of one Redis should have the same. */
export interface ResourcesLimits {
  /** Sessions open at once at one server, over all runs. */
  max_sessions: number;
  /** Counted failures of one rollout. */
  max_failures: number;
  /** Tries of one verification. */
  verify_tries: number;
  seed_timeout_ms: number;
  verify_timeout_ms: number;
  close_timeout_ms: number;
  max_answer_bytes: number;
  /** So long a server may be out of reach before it counts as a failure. */
  unreachable_ms: number;
}

/**
 * The address without its slashes at the end. Throws RollcallError "resources_url" for one that is not http or https, or holds
 * anything that could be a secret: it is kept and shown in clear.
 */
export function resourcesUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !["http:", "https:"].includes(url.protocol))
    throw new RollcallError(
      "resources_url",
      `the resources server's address is not an absolute http or https URL: ${JSON.stringify(shown(text))}`,
    );
  if (url.username !== "" || url.password !== "" || url.search !== "" || url.hash !== "")
    throw new RollcallError(
      "resources_url",
      "the resources server's address must hold neither user info nor a query: it is kept and shown in clear",
    );
  return `${url.origin}${url.pathname}`.replace(/\/+$/, "");
}

function shown(text: string): string {
  return text
    .replace(/\/\/[^/]*@/, "//...@")
    .split("?")[0]!
    .slice(0, 80);
}
