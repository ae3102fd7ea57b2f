// SPDX-License-Identifier: Apache-2.0
import { sealActivation } from "../activation/seal.ts";
import type { CookieClaim } from "./cookie.ts";
import { draftOf } from "./draft.ts";
import { hasDigest, keyedDigest } from "./keyed-digest.ts";
import { parseMessage, seedSchema } from "./messages.ts";
import type { AgentServerPorts } from "./ports.ts";
import { decideSeed } from "./session-state.ts";
import type { SessionStore } from "./session-store.ts";

/**
 * Takes a session's grants in, sealed, after all that can be known to be unusable about them was refused. The sandbox is made
 * when the activation runs. Doing it again with the same payload changes nothing. Throws GymProblem.
 */
export async function seedSession(ports: AgentServerPorts, sessions: SessionStore, raw: unknown, cookie: CookieClaim): Promise<string> {
  const { keys } = ports;
  const request = parseMessage(seedSchema, raw);
  const { agent_session_id: id, episode_id, task_id } = request;
  const { activation, given } = draftOf(request, ports);
  const payload = { id, episode_id, task_id, given };
  await sessions.change(id, (known) => {
    const decision = decideSeed(known, { id, isSame: (seed) => hasDigest(keys, seed, payload) }, cookie);
    if (decision.kind === "refuse") throw decision.problem;
    if (decision.kind === "same") return { answer: null, change: null };
    const record = {
      state: "open",
      episode_id,
      seed: keyedDigest(keys, payload),
      body: null,
      draft: sealActivation(activation, keys),
    } as const;
    return { answer: null, change: { record } };
  });
  return id;
}
