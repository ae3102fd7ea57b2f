// SPDX-License-Identifier: Apache-2.0
import type { ObservationBundle } from "../contract/observation.ts";
import type { ActivationResult } from "../contract/result.ts";
import { Bound } from "../host/bound.ts";
import type { CookieClaim } from "./cookie.ts";
import type { EndWaiter } from "./end-waiter.ts";
import { endActivation } from "./end-activation.ts";
import { closeSchema, parseMessage } from "./messages.ts";
import type { AgentServerPorts } from "./ports.ts";
import { GymProblem } from "./problem.ts";
import { decideClose, type SeededSession, type SessionRecord } from "./session-state.ts";
import type { SessionStore } from "./session-store.ts";

export interface CloseReply {
  agent_session_id: string;
  agent_observations: ObservationBundle;
  /** Upstream's place for cookies of a resources server; this server has none. */
  resources_cookies: null;
}

const NOTHING_OBSERVED: ObservationBundle = { source: "codex", records: [], gaps: [{ code: "agent_activation_interrupted" }] };

/**
 * Ends what runs of a session and answers what was observed. Doing it again answers the same, for the time of the retry window.
 * An unknown id is closed for good. Throws GymProblem; 503 = its end has not come yet, and the close may be asked for again.
 */
export async function closeSession(
  ports: AgentServerPorts,
  sessions: SessionStore,
  ends: EndWaiter,
  raw: unknown,
  cookie: CookieClaim,
): Promise<CloseReply> {
  const request = parseMessage(closeSchema, raw);
  const { agent_session_id: id, episode_id } = request;
  const receiptMs = ports.settings.close_retry_window_seconds * 1_000;
  const closed = (activation_id: string | null): SessionRecord => ({ state: "closed", episode_id, activation_id });

  const closing = await sessions.change(id, (known) => {
    const decision = decideClose(known, request, cookie);
    if (decision.kind === "refuse") throw decision.problem;
    if (decision.kind === "receipt") return { answer: null, change: null };
    if (decision.kind === "tombstone") return { answer: null, change: { record: closed(null), receiptMs } };
    return { answer: decision.session, change: { record: { ...decision.session, state: "closing" } } };
  });
  const result = closing === null ? null : await endOf(ports, ends, closing);
  const receipt = await sessions.change(id, (known) => {
    const standing = known?.record;
    // Whoever was first: all that close at once answer the same. The window counts from here.
    if (standing?.state === "closed") return { answer: standing.activation_id, change: null };
    const activation_id = result?.activation_id ?? null;
    return { answer: activation_id, change: { record: closed(activation_id), receiptMs } };
  });
  const observed = receipt === null ? null : await ports.store.readCommit(receipt);
  return { agent_session_id: id, agent_observations: bundleOf(observed), resources_cookies: null };
}

/** Of the session's activation, told to end if it has not; null when there was none. */
async function endOf(ports: AgentServerPorts, ends: EndWaiter, { body, draft }: SeededSession): Promise<ActivationResult | null> {
  const { queues, store, stopping } = ports;
  if (body === null) return null;
  const { activation_id } = draft;
  const standing = await store.readCommit(activation_id);
  if (standing !== null) return standing;
  if ((await endActivation(queues, activation_id)) === "unknown") return store.readCommit(activation_id);
  const seconds = ports.defaults.codex.session_close_timeout_seconds;
  const bound = new Bound({ seconds, signal: stopping });
  try {
    const result = await ends.ended(activation_id, bound.signal);
    if (result !== null) return result;
  } finally {
    bound.end();
  }
  const why = stopping.aborted ? "the server stops" : `the session has not ended within ${seconds} s`;
  throw new GymProblem(503, `${why}; nothing else is served of it any more: close it again`);
}

/** Of one that was cancelled before anything of it began, nothing was observed. */
function bundleOf(result: ActivationResult | null): ObservationBundle {
  const began = result !== null && (result.status !== "cancelled" || result.attempts.length > 0);
  return began ? result.observations : NOTHING_OBSERVED;
}
