// SPDX-License-Identifier: Apache-2.0
import type { Logger } from "pino";
import type { Claim, RunEnd } from "../activation/ports.ts";
import type { AttemptTelemetry } from "../activation/telemetry.ts";
import { endLabels, handedBackLabels } from "./end-labels.ts";
import type { Tracing } from "./tracing.ts";
import type { WorkerMetrics } from "./worker-metrics.ts";

/** Both at once: each stage is a span, and its time is counted. `metrics` null: nobody scrapes. */
export function attemptTelemetry(tracing: Tracing, metrics: WorkerMetrics | null, log: Logger): AttemptTelemetry {
  /** An end is committed by then: no number is worth its looking like a fault. */
  function unharmed(count: () => void): void {
    try {
      count();
    } catch (error) {
      log.error({ err: error }, "an attempt could not be counted");
    }
  }
  return {
    async stage(name, work) {
      const since = performance.now();
      try {
        return await tracing.within(name, {}, async () => work());
      } finally {
        metrics?.stageEnded(name, performance.now() - since);
      }
    },
    begun: () => metrics?.begun(),
    ended: (report, end, secretsReplaced) => unharmed(() => metrics?.ended(report, end, secretsReplaced)),
    canaryHits: (count) => metrics?.canaryHits(count),
    traceparent: () => tracing.traceparent(),
  };
}

/** The straight line as one span, below the claim's; it says how the attempt left. */
export function tracedRun(tracing: Tracing, run: (claim: Claim) => Promise<RunEnd>): (claim: Claim) => Promise<RunEnd> {
  return (claim) => {
    const { activation_id, run_id } = claim.activation;
    const attributes = { "rollcall.activation_id": activation_id, "rollcall.run_id": run_id };
    return tracing.within("attempt", { attributes }, async (span) => {
      const end = await run(claim);
      const { status, cause_class, failure_kind, cause_code } = labelsOf(end);
      span.set({
        "rollcall.outcome": end.kind,
        "rollcall.attempt": attemptOf(end),
        "rollcall.status": status,
        "rollcall.cause_class": cause_class,
        "rollcall.failure_kind": failure_kind,
        "rollcall.cause_code": cause_code,
      });
      if (status === "failed" || status === "refused") span.fail(cause_code);
      return end;
    });
  };
}

function labelsOf(end: RunEnd) {
  if (end.kind === "ended") return endLabels(end.result);
  return end.kind === "handed_back" ? handedBackLabels(end.reason) : endLabels(end.attempt);
}

function attemptOf(end: RunEnd): number | undefined {
  if (end.kind === "ended") return end.result.episode_id.attempt;
  return end.kind === "handed_back" ? undefined : end.attempt.attempt;
}
