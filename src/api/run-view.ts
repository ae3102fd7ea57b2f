// SPDX-License-Identifier: Apache-2.0
import { z } from "@hono/zod-openapi";
import type { ArtifactStore } from "../artifacts/types.ts";
import { statusSchema } from "../contract/result.ts";
import { breakerState } from "../queue/breaker.ts";
import { runCauses, type CauseGroup } from "../queue/run-causes.ts";
import { runRate } from "../queue/run-rate.ts";
import { runStatus } from "../queue/run-status.ts";
import { countPhases, PHASES, type Phase } from "../resources/record.ts";
import { budgetReply } from "./budget-reply.ts";
import type { ApiPorts } from "./ports.ts";

const count = z.int().min(0);
export const runReply = z
  .object({
    run_id: z.string(),
    /** waiting + parked + delayed + running + rollouts.with_server + all that ended. */
    total: count,
    waiting: count,
    parked: count,
    delayed: count,
    delayed_for: z.object({ model_server: count, able_worker: count, next_attempt: count }),
    running: count,
    /** Of a run with a resources server: rollouts that have not ended; null when there are none. */
    rollouts: z
      .object({
        /** Those that are not in the queue. */
        with_server: count,
        ...(Object.fromEntries(PHASES.map((phase) => [phase, count])) as Record<Phase, typeof count>),
      })
      .nullable(),
    ended: z.object(
      Object.fromEntries(statusSchema.options.map((status) => [status, count])) as Record<z.infer<typeof statusSchema>, typeof count>,
    ),
    ended_per_minute: z.number().nullable(),
    eta_seconds: z.int().nullable(),
    paused: z.object({ by: z.string(), at: z.string(), reason: z.string() }).nullable(),
    /** It holds itself back: different activations failed alike, one after the other. Resuming opens it. */
    breaker: z
      .object({ opened_at: z.string(), cause_code: z.string(), reason: z.string(), retry_in_seconds: z.number().nullable() })
      .nullable(),
    limit: z.int().nullable(),
    budget: budgetReply,
    /** Of those that wait for their next attempt. */
    next_attempt_in_ms: z.number().nullable(),
    failures: z.array(
      z.object({
        failure_kind: z.string(),
        cause_code: z.string(),
        count,
        example: z.object({ activation_id: z.string(), failure_reason: z.string().nullable() }),
      }),
    ),
  })
  .openapi("Run");
export type RunReply = z.infer<typeof runReply>;

/** So many groups of failures are shown, each with the words of one. */
const MOST_GROUPS = 20;

export async function runView({ queues, store }: Pick<ApiPorts, "queues" | "store">, runId: string): Promise<RunReply> {
  const { ended: some, paused: _, pause, with_server, ...status } = await runStatus(queues, runId);
  const { waiting, running, parked, delayed } = status;
  const left = waiting + running + parked + delayed + with_server;
  const ended = { completed: 0, incomplete: 0, failed: 0, refused: 0, cancelled: 0, ...some };
  const total = left + Object.values(ended).reduce((sum, each) => sum + each, 0);
  const [rate, groups, { open, openings }, phases] = await Promise.all([
    runRate(queues, runId, left),
    runCauses(queues, runId),
    breakerState(queues, runId),
    countPhases(queues, runId),
  ]);
  const last = openings.at(-1);
  const retry = open?.retry_in_ms ?? null;
  const breaker =
    open === null || last === undefined
      ? null
      : {
          opened_at: last.opened_at,
          cause_code: last.cause_code,
          reason: last.reason,
          retry_in_seconds: retry === null ? null : retry / 1_000,
        };
  const failures = await Promise.all(groups.slice(0, MOST_GROUPS).map((group) => withReason(store, group)));
  const atServer = with_server > 0 || Object.values(phases).some((each) => each > 0);
  const rollouts = atServer ? { with_server, ...phases } : null;
  return { run_id: runId, total, ...status, rollouts, ended, ...rate, paused: pause, breaker, failures };
}

async function withReason(store: ArtifactStore, { example, ...group }: CauseGroup) {
  const result = await store.readCommit(example);
  return { ...group, example: { activation_id: example, failure_reason: result?.failure?.failure_reason ?? null } };
}
