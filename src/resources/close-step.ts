// SPDX-License-Identifier: Apache-2.0
import { retryPauseMs } from "../queue/disposal.ts";
import { CallFailure, isRetryable } from "./call-failure.ts";
import { nextAttempt } from "./decide.ts";
import { endRollout } from "./end-rollout.ts";
import { leavePlace } from "./places.ts";
import { draftOf, episodeOf, openSession, rolloutSecrets, sessionIdOf, type Move, type Step } from "./step.ts";
import { closeBody } from "./wire.ts";

/** A server that does not let go of a session holds up neither its rollout nor the others. */
const TRIES = 3;

/** Closes the session of this attempt, whatever became of it; then comes the next attempt, or the end. */
export async function closeStep(step: Step): Promise<Move> {
  const { record, queues, log } = step;
  const { activation_id, server } = record;
  const open = record.session_open && server.protocol === "session"; // the other protocol knows no close
  const problem = open ? await closeSession(step) : null;
  if (problem !== null && problem.again && record.tries + 1 < TRIES) {
    const ms = retryPauseMs(queues.settings, record.tries + 1, Math.random());
    return { kind: "wait", ms, record: { ...record, tries: record.tries + 1 } };
  }
  if (problem !== null) log.warn({ activation_id, reason: problem.text }, "a session could not be closed");
  await leavePlace(queues, server.url, activation_id);
  const closed = { ...record, session_open: false, cleanup_error: problem === null ? record.cleanup_error : problem.text };
  // Its session failed before it could be cancelled: that end stands.
  if (record.next === "again" && record.cancel === null) return { kind: "go", record: nextAttempt(closed) };
  await endRollout(step, closed);
  return { kind: "go", record: { ...closed, state: "ended", session: null } };
}

async function closeSession(step: Step): Promise<{ text: string; again: boolean } | null> {
  const { record, caller, limits, keys, signal } = step;
  const session = openSession(keys, record);
  try {
    await caller.post({
      url: `${record.server.url}/close_session`,
      body: closeBody({ session_id: sessionIdOf(record), episode_id: episodeOf(record) }),
      cookies: session.cookies,
      timeoutMs: limits.close_timeout_ms,
      maxAnswerBytes: limits.max_answer_bytes,
      secrets: rolloutSecrets(draftOf(step), session),
      signal,
    });
    return null;
  } catch (error) {
    if (!(error instanceof CallFailure)) throw error;
    return { text: `/close_session: ${error.message}`, again: isRetryable(error.fault) };
  }
}
