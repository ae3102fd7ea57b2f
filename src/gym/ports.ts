// SPDX-License-Identifier: Apache-2.0
import type { Logger } from "pino";
import type { SecretKeys } from "../activation/secret-keys.ts";
import type { ArtifactStore } from "../artifacts/types.ts";
import type { ToolGrant } from "../contract/grant.ts";
import type { AdmissionPolicy } from "../contract/refusals.ts";
import type { Queues } from "../queue/queues.ts";
import type { RowDefaults } from "../rollout/task-row.ts";

/** What the agent server works with. It keeps no state of its own: any number of them may serve one Redis. */
export interface AgentServerPorts {
  /** Opened with the role "fail_fast": a caller waits. */
  queues: Queues;
  store: ArtifactStore;
  /** For sealing grants, and for signing cookies: the first signs, all verify. */
  keys: SecretKeys;
  policy: AdmissionPolicy;
  /** What each session gets: callers of this protocol choose neither model nor sandbox. */
  defaults: RowDefaults;
  /** Given to every session, overlaid by its own by name. */
  toolGrants: readonly ToolGrant[];
  settings: AgentServerSettings;
  log: Logger;
  /** Aborted when the server stops: whoever waits is answered. */
  stopping: AbortSignal;
}

export interface AgentServerSettings {
  /** How long Redis keeps a session after its last change. */
  session_hours: number;
  /** How long a close is answered again, from the end of the cleanup. */
  close_retry_window_seconds: number;
  /** How a failure within the turn is told. */
  agent_outcome: "metadata" | "502";
  max_body_mb: number;
  /** Requests that wait for an end, at once in one process. */
  max_waiting: number;
}
