// SPDX-License-Identifier: Apache-2.0
import { randomBytes } from "node:crypto";
import { contentDigest, differingFields } from "../activation/content.ts";
import { sealActivation, sealedWith } from "../activation/seal.ts";
import type { SecretKeys } from "../activation/secret-keys.ts";
import type { ArtifactStore } from "../artifacts/types.ts";
import type { SessionActivation } from "../contract/activation.ts";
import { nextGeneration } from "../queue/enqueue-again.ts";
import { requireQueueable, type EnqueueAnswer } from "../queue/enqueue.ts";
import { keys as names } from "../queue/names.ts";
import type { Queues } from "../queue/queues.ts";
import { wakeStep } from "../queue/wake-step.ts";
import { readRolloutEnd } from "./documents.ts";
import { createRollout, readRollout, stepJobId, type KeptRollout, type RolloutRecord } from "./record.ts";
import { keepRow } from "./rows.ts";
import type { ResourcesServer } from "./server.ts";
import type { Row } from "./wire.ts";

export interface RolloutRequest {
  /** Without the grant that its seed will give it. Its results queue, if it names one, gets nothing. */
  activation: SessionActivation;
  row: Row;
}

interface Parts {
  queues: Queues;
  store: ArtifactStore;
  keys: SecretKeys;
  server: ResourcesServer;
}

/**
 * Adds rollouts; in Redis and the store when it resolves. Answers as for activations: the same rollout with the same content joins
 * what is there, so a producer that was killed may add everything again. `again`: those that have ended begin anew. Throws RollcallError
 * "activation_too_large".
 */
export async function enqueueRollouts(
  parts: Parts,
  requests: readonly RolloutRequest[],
  { again }: { again: boolean },
): Promise<EnqueueAnswer[]> {
  return Promise.all(requests.map((request) => enqueueRollout(parts, request, again)));
}

async function enqueueRollout(parts: Parts, { activation, row }: RolloutRequest, again: boolean): Promise<EnqueueAnswer> {
  const { queues, store, keys, server } = parts;
  const { activation_id } = activation;
  const row_sha256 = await keepRow(store, row);
  for (;;) {
    const kept = await readRollout(queues, activation_id);
    const sealed = sealActivation(activation, keys, kept?.draft == null ? undefined : sealedWith(kept.draft)[0]);
    requireQueueable(queues, activation, sealed);
    const committed = await store.readCommit(activation_id);
    const ended = committed !== null && (await readRolloutEnd(store, activation_id, committed.generation)) !== null;
    // The store decides: whoever wrote the end there may have been killed before the record said so.
    if (ended && !again) return { activation_id, outcome: "ended" };
    if (!ended && kept !== null && kept.record.state !== "ended") return join(queues, kept, { activation, row_sha256, server });
    const record: RolloutRecord = {
      activation_id,
      run_id: activation.run_id,
      task_id: activation.task_id,
      rollout_id: activation.episode_id.rollout_id,
      nonce: randomBytes(4).toString("hex"),
      server,
      content_digest: contentDigest(activation),
      row_sha256,
      state: "seed",
      attempt: await firstAttempt(parts, activation),
      generation: await nextGeneration(queues, store, activation_id),
      session_open: false,
      session: null,
      queued: false,
      counted: 0,
      uncounted: 0,
      not_before: 0,
      unreachable_since: null,
      tries: 0,
      next: null,
      failure: null,
      verification_failure: null,
      cancel: null,
      cleanup_error: null,
    };
    if (!(await createRollout(queues, kept, record, sealed))) continue; // another producer was faster
    await queues.redis.zadd(names.runs, Date.now(), record.run_id);
    await begin(queues, record);
    return { activation_id, outcome: "added" };
  }
}

/** Attempt numbers are never used twice: they name routes, sessions and directories. */
async function firstAttempt({ queues, store }: Parts, { activation_id, episode_id }: SessionActivation): Promise<number> {
  const saved = await store.readAttempts(activation_id);
  const next = Number((await queues.redis.hget(names.ledger(activation_id), "next")) ?? 0);
  return Math.max(episode_id.attempt, next, (saved.at(-1)?.attempt ?? -1) + 1);
}

async function join(
  queues: Queues,
  { record, draft }: KeptRollout,
  given: { activation: SessionActivation; row_sha256: string; server: ResourcesServer },
): Promise<EnqueueAnswer> {
  const { activation_id } = record;
  const sameServer = record.server.protocol === given.server.protocol && record.server.mcp === given.server.mcp;
  if (record.content_digest !== contentDigest(given.activation) || record.row_sha256 !== given.row_sha256 || !sameServer) {
    const fields = [
      ...(draft === null ? [] : differingFields(draft, given.activation)),
      ...(record.row_sha256 === given.row_sha256 ? [] : ["row"]),
      ...(sameServer ? [] : ["resources server"]),
    ];
    return { activation_id, outcome: "conflict", fields };
  }
  await begin(queues, record); // whoever made it may have been killed before this
  return { activation_id, outcome: "joined" };
}

function begin(queues: Queues, record: RolloutRecord): Promise<void> {
  return wakeStep(queues, { activation_id: record.activation_id, job_id: stepJobId(record, "begin") });
}
