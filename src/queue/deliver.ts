// SPDX-License-Identifier: Apache-2.0
import { createHash } from "node:crypto";
import { activationJobId } from "../contract/identity.ts";
import type { ActivationResult } from "../contract/result.ts";
import type { DeliveredResult, Queues } from "./queues.ts";

/**
 * Adds the result to a results queue as an ordinary job, whose id is the activation's (with its generation from the
 * second one on): doing it twice delivers once.
 */
export async function deliver(queues: Queues, replyTo: string, result: ActivationResult, storeId: string): Promise<void> {
  const keep = { age: Math.ceil(queues.settings.keep_ended_ms / 1_000) };
  await queues.results(replyTo).add("result", deliverable(result, queues.settings.max_result_bytes, storeId), {
    jobId: activationJobId(result.activation_id, result.generation),
    removeOnComplete: keep,
    removeOnFail: keep,
  });
}

/** The result as it is when it is small enough; else without its large parts, which `body` says where to find. Pure. */
export function deliverable(result: ActivationResult, maxBytes: number, storeId: string): DeliveredResult {
  const text = Buffer.from(JSON.stringify(result), "utf8");
  if (text.length <= maxBytes) return result;
  const empty: ActivationResult["observations"] = { source: "codex", records: [], gaps: [] };
  return {
    ...result,
    response: null,
    observations: empty,
    attempts: result.attempts.map((attempt) => ({ ...attempt, observations: empty })),
    artifacts: [],
    body: { store_id: storeId, bytes: text.length, sha256: createHash("sha256").update(text).digest("hex") },
  };
}
