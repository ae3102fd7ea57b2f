// SPDX-License-Identifier: Apache-2.0
import { createHash } from "node:crypto";
import { PREFIX } from "../queue/names.ts";

/** The run that all activations of agent sessions belong to: one stream tells of all their ends. */
export const AGENT_SERVER_RUN = "agent-server";

/** Beside the queue's own keys. Session ids are their callers' and may be any text, so keys hold their hashes. */
export const gymKeys = {
  /** Hash of one session: revision, record (JSON). Expires. */
  session: (idHash: string): string => `${PREFIX}:agent-session:${idHash}`,
  /** There while a close may be asked for again. Expires. */
  receipt: (idHash: string): string => `${PREFIX}:agent-receipt:${idHash}`,
  /** Sorted set of sessions, by when (Redis time, ms) they changed last. */
  sessions: `${PREFIX}:agent-sessions`,
} as const;

export function sessionHash(agentSessionId: string): string {
  return createHash("sha256").update(agentSessionId, "utf8").digest("hex");
}
