// SPDX-License-Identifier: Apache-2.0
import { createHash } from "node:crypto";
import type { ArtifactStore, CommittedBytes } from "../artifacts/types.ts";
import { activationJobId } from "../contract/identity.ts";
import type { ActivationResult, ResultBody } from "../contract/result.ts";
import { RollcallError } from "../errors.ts";
import { keys } from "./names.ts";
import type { Queues } from "./queues.ts";
import type { QueueSettings } from "./settings.ts";

/**
 * Adds a committed result to a results queue as an ordinary job, whose id is the activation's (with its generation from the
 * second one on): doing it twice delivers once. A result of more than `max_result_bytes` goes by reference. Throws RollcallError
 * "result_missing" when that one is not in the store.
 */
export async function deliver(queues: Queues, replyTo: string, result: ActivationResult, store: ArtifactStore): Promise<void> {
  const keep = { age: Math.ceil(queues.settings.keep_ended_ms / 1_000) };
  const delivered = await deliverable(queues.settings, result, store);
  await queues.redis.sadd(keys.resultQueues, replyTo);
  await queues.results(replyTo).add("result", delivered, {
    jobId: activationJobId(result.activation_id, result.generation),
    removeOnComplete: keep,
    removeOnFail: keep,
  });
}

/** As it is handed on: whole, or by reference. Throws RollcallError "result_missing". */
export async function deliverable(
  { max_result_bytes }: Pick<QueueSettings, "max_result_bytes">,
  result: ActivationResult,
  store: ArtifactStore,
): Promise<ActivationResult> {
  const isSmall = Buffer.byteLength(JSON.stringify(result), "utf8") <= max_result_bytes;
  return isSmall ? result : referenceTo(result, await bodyIn(store, result));
}

/**
 * The whole result of what came out of a results queue: itself, or what its `body` names, read from the store and checked. Throws
 * RollcallError "result_elsewhere" when it is in another store, "result_missing", or "result_damaged" when its bytes are others.
 */
export async function wholeResult(store: ArtifactStore, delivered: ActivationResult): Promise<ActivationResult> {
  const { body, activation_id, generation } = delivered;
  if (body === undefined) return delivered;
  if (body.store_id !== store.id) {
    throw new RollcallError("result_elsewhere", `the result of ${activation_id} is in the store ${body.store_id}, this one is ${store.id}`);
  }
  const { text } = await committedIn(store, activation_id, generation);
  const { bytes, sha256 } = sumOf(text);
  if (bytes === body.bytes && sha256 === body.sha256) return JSON.parse(text) as ActivationResult;
  throw new RollcallError(
    "result_damaged",
    `the result of ${activation_id} is not the one that was delivered: it has ${bytes} bytes and sha256 ${sha256}, expected ${body.bytes} and ${body.sha256}`,
  );
}

/** Without whatever may be large, so that the size is bounded by what the producer wrote itself. Pure. */
function referenceTo(result: ActivationResult, body: ResultBody): ActivationResult {
  const observations: ActivationResult["observations"] = { source: "codex", records: [], gaps: [] };
  return { ...result, response: null, evidence: null, observations, attempts: [], artifacts: [], body };
}

async function bodyIn(store: ArtifactStore, { activation_id, generation }: ActivationResult): Promise<ResultBody> {
  const { text, uri } = await committedIn(store, activation_id, generation);
  return { store_id: store.id, uri, ...sumOf(text) };
}

async function committedIn(store: ArtifactStore, activationId: string, generation: number): Promise<CommittedBytes> {
  const committed = await store.readCommitted(activationId, generation);
  if (committed !== null) return committed;
  throw new RollcallError("result_missing", `the store ${store.id} has no result of ${activationId}, generation ${generation}`);
}

function sumOf(text: string): { bytes: number; sha256: string } {
  const bytes = Buffer.from(text, "utf8");
  return { bytes: bytes.length, sha256: createHash("sha256").update(bytes).digest("hex") };
}
