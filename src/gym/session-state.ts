// SPDX-License-Identifier: Apache-2.0
import type { SealedActivation } from "../activation/seal.ts";
import { captureKey, type EpisodeId } from "../contract/identity.ts";
import type { CookieClaim } from "./cookie.ts";
import type { KeyedDigest } from "./keyed-digest.ts";
import type { CloseRequest } from "./messages.ts";
import { conflict, type GymProblem } from "./problem.ts";

/**
 * One agent session, as Redis keeps it. open: seeded. closing: no request but another close is served. closed: also of an id
 * that was closed before it was seeded, so that a late seed is refused.
 */
export type SessionRecord =
  | (SeededSession & { state: "open" | "closing" })
  | {
      state: "closed";
      episode_id: EpisodeId;
      /** Whose observations the close answers; null = there are none. */ activation_id: string | null;
    };

export interface SeededSession {
  episode_id: EpisodeId;
  /** Of the seed's payload. */
  seed: KeyedDigest;
  /** Of the activation's body, once there was one. */
  body: KeyedDigest | null;
  /** Complete but for what the body says. */
  draft: SealedActivation;
}

/** What is known of an id. */
export interface KnownSession {
  record: SessionRecord;
  /** The window in which a close is answered again is not over. */
  receipt: boolean;
}

interface Refused {
  kind: "refuse";
  problem: GymProblem;
}

/** create: it is new. same: this very payload was seeded before. Pure. */
export function decideSeed(
  known: KnownSession | null,
  request: { id: string; isSame: (seed: KeyedDigest) => boolean },
  cookie: CookieClaim,
): { kind: "create" | "same" } | Refused {
  const foreign = foreignCookie(cookie, request.id);
  if (foreign !== null) return refuse(foreign);
  if (known === null)
    return cookie.kind === "none" ? { kind: "create" } : refuse("the session of this cookie is over; seed another without it");
  const { record } = known;
  if (record.state === "closed") return refuse("this agent_session_id was closed; seed another");
  if (record.state === "closing") return refuse("this agent session is being closed");
  return request.isSame(record.seed) ? { kind: "same" } : refuse("this agent_session_id was seeded with another payload");
}

/** The open session that a request for its activation belongs to. `routeKey`: from the path; null = the route without one. Pure. */
export function decideRoute(known: KnownSession | null, routeKey: string | null): { kind: "session"; session: SeededSession } | Refused {
  const record = known?.record;
  if (record === undefined || record.state === "closed") return refuse("this agent session is not known, or was closed");
  if (record.state === "closing") return refuse("this agent session is being closed");
  const key = captureKey(record.episode_id);
  if (routeKey !== key) return refuse(`this agent session is served at /ng-rollout/${key}/v1/responses`);
  return { kind: "session", session: record };
}

/** begin: it is the session's one activation. join: the same request again, which gets the same answer. Pure. */
export function decideBody(session: SeededSession, isSame: (body: KeyedDigest) => boolean): { kind: "begin" | "join" } | Refused {
  if (session.body === null) return { kind: "begin" };
  return isSame(session.body) ? { kind: "join" } : refuse("this agent session has had its activation, with another body");
}

/** tombstone: nothing is to be ended, and a late seed is refused from now on. receipt: what was answered before. Pure. */
export function decideClose(
  known: KnownSession | null,
  { agent_session_id, episode_id }: CloseRequest,
  cookie: CookieClaim,
): { kind: "tombstone" } | { kind: "receipt" } | { kind: "close"; session: SeededSession } | Refused {
  const foreign = foreignCookie(cookie, agent_session_id);
  if (foreign !== null) return refuse(foreign);
  const over = "the receipt of this agent session has expired";
  if (known === null) return cookie.kind === "none" ? { kind: "tombstone" } : refuse(over);
  const { record, receipt } = known;
  if (captureKey(record.episode_id) !== captureKey(episode_id)) return refuse("this agent session belongs to another episode");
  if (record.state !== "closed") return { kind: "close", session: record };
  if (receipt) return { kind: "receipt" };
  return cookie.kind === "none" ? { kind: "tombstone" } : refuse(over);
}

function foreignCookie(cookie: CookieClaim, id: string): string | null {
  if (cookie.kind === "unusable") return "the session cookie is none of this server's";
  return cookie.kind === "session" && cookie.id !== id ? "the session cookie belongs to another agent session" : null;
}

function refuse(detail: string): Refused {
  return { kind: "refuse", problem: conflict(detail) };
}
