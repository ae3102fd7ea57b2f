// SPDX-License-Identifier: Apache-2.0
import { openActivation } from "../activation/seal.ts";
import type { ActivationResult } from "../contract/result.ts";
import { setBreaker } from "../queue/breaker.ts";
import { enqueueActivations } from "../queue/enqueue.ts";
import { parseActivationBody } from "./activation-body.ts";
import { answerOf, type ResponseObject } from "./answer.ts";
import type { CookieClaim } from "./cookie.ts";
import { completeDraft } from "./draft.ts";
import type { EndWaiter } from "./end-waiter.ts";
import { endActivation } from "./end-activation.ts";
import { hasDigest, keyedDigest } from "./keyed-digest.ts";
import { AGENT_SERVER_RUN } from "./names.ts";
import type { AgentServerPorts } from "./ports.ts";
import { conflict, GymProblem } from "./problem.ts";
import { decideBody, decideRoute, type KnownSession, type SeededSession } from "./session-state.ts";
import type { SessionStore } from "./session-store.ts";

export interface ActivationRequest {
  /** Parsed JSON. */
  raw: unknown;
  cookie: CookieClaim;
  /** From the path; null = the route without one. */
  routeKey: string | null;
  /** The caller is gone, or the server stops. */
  gone: AbortSignal;
}

/**
 * Runs the one activation of a session, or joins it when the same request comes again, and answers its end. Callers that go
 * away change nothing: only a close ends it. Throws GymProblem.
 */
export async function activateSession(
  ports: AgentServerPorts,
  sessions: SessionStore,
  ends: EndWaiter,
  { raw, cookie, routeKey, gone }: ActivationRequest,
): Promise<ResponseObject> {
  const { keys, settings, store } = ports;
  if (cookie.kind === "none")
    throw conflict("there is no session cookie: seed an agent session first; this server runs nothing without one");
  if (cookie.kind === "unusable") throw conflict("the session cookie is none of this server's");
  const { id } = cookie;
  const seeded = sessionOn(await sessions.read(id), routeKey);
  const model = modelOf(seeded);
  const body = parseActivationBody(raw, model);
  const activation = completeDraft(openActivation(seeded.draft, keys), body, ports.policy);

  // From here on the session has had its activation.
  await sessions.change(id, (known) => {
    const session = sessionOn(known, routeKey);
    const decision = decideBody(session, (digest) => hasDigest(keys, digest, body));
    if (decision.kind === "refuse") throw decision.problem;
    const record = { ...session, state: "open", body: keyedDigest(keys, body) } as const;
    return { answer: null, change: decision.kind === "join" ? null : { record } };
  });
  const { activation_id } = activation;
  const answer = (result: ActivationResult): ResponseObject =>
    answerOf(result, { metadata: body.metadata, model, agentOutcome: settings.agent_outcome });
  const standing = await store.readCommit(activation_id);
  if (standing !== null) return answer(standing);

  // Callers retry by themselves, and wait: they get each failure now, not when a breaker lets the next one try.
  await setBreaker(ports.queues, AGENT_SERVER_RUN, "off");
  // Also for one that joins: whoever began may have been killed before this.
  await enqueueActivations(ports.queues, [activation], { keys, singleAttempt: true });
  const now = await sessions.read(id);
  // It was closed meanwhile, and the close may have found nothing to end.
  if (now?.record.state !== "open") await endActivation(ports.queues, activation_id);

  const result = await ends.ended(activation_id, gone);
  if (result === null) throw new GymProblem(503, "the server stops; the session goes on: send the same request again");
  return answer(result);
}

function sessionOn(known: KnownSession | null, routeKey: string | null): SeededSession {
  const decision = decideRoute(known, routeKey);
  if (decision.kind === "refuse") throw decision.problem;
  return decision.session;
}

/** What it will use, by its settings; null = Codex's own choice. */
function modelOf({ draft }: SeededSession): string | null {
  const { name } = (draft["model"] ?? {}) as { name?: string };
  return name ?? null;
}
