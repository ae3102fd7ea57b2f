// SPDX-License-Identifier: Apache-2.0
import { expect, it } from "vitest";
import type { CookieClaim } from "../../src/gym/cookie.ts";
import { decideBody, decideClose, decideRoute, decideSeed, type KnownSession, type SeededSession } from "../../src/gym/session-state.ts";

const NONE: CookieClaim = { kind: "none" };
const UNUSABLE: CookieClaim = { kind: "unusable" };
const OWN: CookieClaim = { kind: "session", id: "s" };
const OTHER: CookieClaim = { kind: "session", id: "t" };
const episode_id = { rollout_id: "r", attempt: 1 };
const seeded: SeededSession = { episode_id, seed: { key_id: "k", hmac: "seed" }, body: null, draft: { activation_id: "gym-s" } };
const open: KnownSession = { record: { ...seeded, state: "open" }, receipt: false };
const closing: KnownSession = { record: { ...seeded, state: "closing" }, receipt: false };
const closed: KnownSession = { record: { state: "closed", episode_id, activation_id: "gym-s" }, receipt: true };
const expired: KnownSession = { ...closed, receipt: false };

function kindOf(decision: { kind: string; problem?: { status: number } }): string | number {
  return decision.problem?.status ?? decision.kind;
}

it.each<[string, KnownSession | null, boolean, CookieClaim, string | number]>([
  ["a new id", null, false, NONE, "create"],
  ["the same payload again", open, true, NONE, "same"],
  ["the same payload again, with its cookie", open, true, OWN, "same"],
  ["another payload", open, false, NONE, 409],
  ["the cookie of another session", open, true, OTHER, 409],
  ["a new id with the cookie of another session", null, false, OTHER, 409],
  ["a cookie that nobody signed", null, false, UNUSABLE, 409],
  ["an id that was closed", closed, true, NONE, 409],
  ["a session that is being closed", closing, true, OWN, 409],
  ["a cookie whose receipt has expired", expired, true, OWN, 409],
  ["a cookie whose session is forgotten", null, true, OWN, 409],
])("a seed with %s", (_, known, same, cookie, expected) => {
  expect(kindOf(decideSeed(known, { id: "s", isSame: () => same }, cookie))).toBe(expected);
});

it.each<[string, KnownSession | null, string | null, string | number]>([
  ["at its own route", open, "r-a1", "session"],
  ["at the route of another attempt", open, "r", 409],
  ["at the route without a capture key", open, null, 409],
  ["of an unknown session", null, "r-a1", 409],
  ["of a session that is being closed", closing, "r-a1", 409],
  ["of a closed session", closed, "r-a1", 409],
])("an activation %s", (_, known, key, expected) => {
  expect(kindOf(decideRoute(known, key))).toBe(expected);
});

it("a session has one activation: the same body joins it, another is refused", () => {
  expect(kindOf(decideBody(seeded, () => false))).toBe("begin");
  const begun = { ...seeded, body: { key_id: "k", hmac: "body" } };
  expect(kindOf(decideBody(begun, ({ hmac }) => hmac === "body"))).toBe("join");
  expect(kindOf(decideBody(begun, () => false))).toBe(409);
});

it.each<[string, KnownSession | null, number, CookieClaim, string | number]>([
  ["an open session", open, 1, OWN, "close"],
  ["an open session whose seed's reply was lost", open, 1, NONE, "close"],
  ["one whose close did not come to its end", closing, 1, NONE, "close"],
  ["a closed one", closed, 1, OWN, "receipt"],
  ["a closed one, without a cookie", closed, 1, NONE, "receipt"],
  ["one whose receipt has expired", expired, 1, OWN, 409],
  ["one whose receipt has expired, without a cookie", expired, 1, NONE, "tombstone"],
  ["an unknown id", null, 1, NONE, "tombstone"],
  ["a forgotten one", null, 1, OWN, 409],
  ["one of another episode", open, 0, OWN, 409],
  ["a closed one of another episode", closed, 0, NONE, 409],
  ["an open session, with the cookie of another", open, 1, OTHER, 409],
  ["an open session, with a cookie that nobody signed", open, 1, UNUSABLE, 409],
])("a close of %s", (_, known, attempt, cookie, expected) => {
  expect(kindOf(decideClose(known, { agent_session_id: "s", episode_id: { rollout_id: "r", attempt } }, cookie))).toBe(expected);
});
