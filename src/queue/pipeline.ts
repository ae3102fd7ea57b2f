// SPDX-License-Identifier: Apache-2.0
import type { ChainableCommander, Redis } from "ioredis";

/** Sends commands in one go and answers their replies, in order. Throws the first error among them. */
export async function inPipeline(redis: Redis, fill: (pipeline: ChainableCommander) => void): Promise<unknown[]> {
  const pipeline = redis.pipeline();
  fill(pipeline);
  const replies = (await pipeline.exec()) ?? [];
  return replies.map(([error, reply]) => {
    if (error !== null) throw error;
    return reply;
  });
}
