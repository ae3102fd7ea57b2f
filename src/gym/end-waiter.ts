// SPDX-License-Identifier: Apache-2.0
import type { ActivationResult } from "../contract/result.ts";
import { followRun } from "../queue/ended.ts";
import { keys } from "../queue/names.ts";
import { deferred } from "../rollout/waiting.ts";
import { AGENT_SERVER_RUN } from "./names.ts";
import type { AgentServerPorts } from "./ports.ts";

/** Waits for the ends of activations. However many wait, one connection to Redis hears of all ends. */
export interface EndWaiter {
  /** The committed result, now or as soon as there is one; null when `signal` was aborted first. */
  ended(activationId: string, signal: AbortSignal): Promise<ActivationResult | null>;
}

/** Begins to listen with the first one that waits, and ends with `stopping`. */
export function endWaiter({ queues, store, stopping, log }: Pick<AgentServerPorts, "queues" | "store" | "stopping" | "log">): EndWaiter {
  const waiting = new Map<string, Set<() => void>>();
  let listening: Promise<void> | null = null;

  /** Resolves once every later end is heard of. */
  async function listen(): Promise<void> {
    const [last] = await queues.redis.xrevrange(keys.ended(AGENT_SERVER_RUN), "+", "-", "COUNT", 1);
    void hear(last?.[0] ?? "0");
  }
  async function hear(from: string): Promise<void> {
    try {
      for await (const { activation_id } of followRun(queues, AGENT_SERVER_RUN, { from, signal: stopping })) {
        for (const tell of waiting.get(activation_id) ?? []) tell();
      }
    } catch (error) {
      log.error({ err: error }, "ends of agent sessions are not heard of any more");
      for (const tell of [...waiting.values()].flatMap((tells) => [...tells])) tell();
    } finally {
      listening = null;
    }
  }

  return {
    async ended(activationId, signal) {
      for (;;) {
        const end = deferred<void>();
        const tell = (): void => end.resolve();
        const tells = waiting.get(activationId) ?? new Set();
        waiting.set(activationId, tells.add(tell));
        signal.addEventListener("abort", tell, { once: true });
        try {
          listening ??= listen().catch((error: unknown) => {
            listening = null;
            throw error;
          });
          await listening;
          const standing = await store.readCommit(activationId);
          if (standing !== null || signal.aborted) return standing;
          await end.promise; // it has ended, or nobody listens any more
        } finally {
          signal.removeEventListener("abort", tell);
          tells.delete(tell);
          if (tells.size === 0) waiting.delete(activationId);
        }
      }
    },
  };
}
