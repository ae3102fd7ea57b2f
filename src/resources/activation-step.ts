// SPDX-License-Identifier: Apache-2.0
import { createHash } from "node:crypto";
import type { SessionActivation } from "../contract/activation.ts";
import { overlayGrants } from "../contract/grant.ts";
import type { ActivationResult } from "../contract/result.ts";
import { retryPauseMs } from "../queue/disposal.ts";
import { failure, sessionLost } from "../queue/end-without-run.ts";
import { enqueueActivations } from "../queue/enqueue.ts";
import { afterActivation, afterFailure } from "./decide.ts";
import { stepJobId, type RolloutRecord } from "./record.ts";
import { draftOf, episodeOf, openSession, sessionIdOf, type Move, type Step } from "./step.ts";

/**
 * Puts the activation of this attempt into the queue; once it has ended, decides what its end means. `final` wakes the rollout
 * when that end is recorded.
 */
export async function activationStep(step: Step): Promise<Move> {
  const { record, queues, store, keys } = step;
  const committed = await store.readCommitted(record.activation_id, record.generation);
  if (committed !== null) return { kind: "go", record: afterEnd(step, JSON.parse(committed.text) as ActivationResult) };
  // Noted first: were it queued and not noted, the next attempt would take its generation.
  if (!record.queued) return { kind: "go", record: { ...record, queued: true } };

  if (record.generation > 0) await store.setAside(record.activation_id, record.generation - 1);
  const nextStep = { activation_id: record.activation_id, job_id: stepJobId(record, `ended-${record.generation}`) };
  const [answer] = await enqueueActivations(queues, [activationOf(step)], {
    keys,
    generation: record.generation,
    singleAttempt: true,
    nextStep,
  });
  if (answer!.outcome === "added" || answer!.outcome === "joined") return { kind: "rest" };
  const lost =
    answer!.outcome === "ended"
      ? sessionLost("its activation ended, and its result is not in this artifact store")
      : failure("agent_request_failed", "unknown", "an activation of this id is in the queue with other content");
  return { kind: "go", record: { ...record, state: "close", next: "end", tries: 0, failure: lost } };
}

function afterEnd({ record, queues, limits }: Step, result: ActivationResult): RolloutRecord {
  const after = afterActivation(result, record.attempt);
  if (after.kind === "verify") return { ...record, state: "verify", tries: 0 };
  if (after.kind === "end") return { ...record, state: "close", next: "end", tries: 0, failure: after.failure };
  const pause = after.counted ? retryPauseMs(queues.settings, record.counted + 1, Math.random()) : 0;
  return afterFailure(record, after, limits, pause, Date.now());
}

/** One attempt, under exactly this rollout's capture key, with the server's tools. */
function activationOf(step: Step): SessionActivation {
  const draft = draftOf(step);
  const { grant } = openSession(step.keys, step.record);
  const hash = createHash("sha256")
    .update(`agent\0${sessionIdOf(step.record)}`)
    .digest("hex");
  return {
    ...draft,
    agent_session_id: `agent-session-${hash.slice(0, 32)}`,
    episode_id: episodeOf(step.record),
    tool_grants: grant === null ? draft.tool_grants : overlayGrants(draft.tool_grants, [grant]),
    max_attempts: 1,
    reply_to: null,
  };
}
