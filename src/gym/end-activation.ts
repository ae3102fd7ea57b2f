// SPDX-License-Identifier: Apache-2.0
import { cancelActivation } from "../queue/cancel.ts";
import type { ActivationState } from "../queue/find-activation.ts";
import { keys } from "../queue/names.ts";
import type { Queues } from "../queue/queues.ts";

/**
 * Asks for the end of a session's activation; answers where it was. The mark is there before anything else, so that one
 * that is only on its way into the queue is not run either.
 */
export async function endActivation(queues: Queues, activationId: string): Promise<ActivationState> {
  const mark = { by: "agent server", at: new Date().toISOString(), reason: "the agent session was closed" };
  await queues.redis.set(keys.cancel(activationId), JSON.stringify(mark), "PX", queues.settings.keep_ended_ms, "NX");
  return (await cancelActivation(queues, activationId, mark)).state;
}
