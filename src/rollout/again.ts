// SPDX-License-Identifier: Apache-2.0
import type { ResultFacts } from "./facts.ts";

/** Which ended tasks the next start runs again; those that never ended always run. */
export type RetryPolicy = "infra" | "failed" | "none";
export const RETRY_POLICIES: readonly RetryPolicy[] = ["infra", "failed", "none"];

/**
 * Whether an ended activation runs again. `infra`: what the agent is not to blame for, that is faults of the machines or
 * the model server, and sessions that never began. `failed`: everything that is not gradable. A limit (wall clock) is an
 * end, not a fault. Pure.
 */
export function runsAgain(facts: ResultFacts, policy: RetryPolicy): boolean {
  switch (policy) {
    case "none":
      return false;
    case "failed":
      return facts.status !== "completed" && facts.status !== "incomplete";
    case "infra":
      return (
        facts.status === "failed" &&
        (facts.startup_failed || facts.cause_class === "infrastructure" || facts.cause_class === "model_provider")
      );
    default:
      return policy satisfies never;
  }
}
