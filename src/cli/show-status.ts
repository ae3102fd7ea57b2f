// SPDX-License-Identifier: Apache-2.0
import { answerTo } from "../queue/answers.ts";
import { breakerState, type BreakerState } from "../queue/breaker.ts";
import type { BudgetState } from "../queue/budget.ts";
import type { FoundActivation } from "../queue/find-activation.ts";
import { refusingModels, type RefusingModel } from "../queue/model-limiter.ts";
import { readProgress } from "../queue/progress.ts";
import { runStatus, type RunStatus } from "../queue/run-status.ts";
import { waitsFor, type WaitsFor } from "../queue/waits.ts";
import { liveWorkers, workersAbsentMs } from "../queue/worker-lease.ts";
import { workerLoads, type WorkerLoad } from "../queue/worker-loads.ts";
import type { RolloutNow } from "../resources/find-rollouts.ts";
import { countPhases, type Phase } from "../resources/record.ts";
import { EXIT } from "../rollout/exit-code.ts";
import { pausedBy } from "../rollout/paused.ts";
import { printable } from "../printable.ts";
import { durationText } from "../contract/figures.ts";
import { amount } from "../rollout/summary-table.ts";
import type { Reply } from "./control-actions.ts";
import type { Target } from "./control-target.ts";
import type { Desk } from "./desk.ts";

const WAITS: Record<WaitsFor, string> = {
  model_server: "waits for the model server, which has as many sessions as it takes or asked for a pause",
  able_worker: "waits for a worker that can run it",
  next_attempt: "waits for its next attempt",
};

/** The answer of `rollcall status`. */
export async function showStatus({ queues }: Desk, target: Target): Promise<Reply> {
  if (target.kind === "run") {
    const { run_id } = target;
    const [status, workers, breaker, refusing_models, workers_absent_ms, phases] = await Promise.all([
      runStatus(queues, run_id),
      workerLoads(queues, run_id),
      breakerState(queues, run_id),
      refusingModels(queues),
      workersAbsentMs(queues),
      countPhases(queues, run_id),
    ]);
    const atServer = Object.values(phases).some((count) => count > 0);
    const facts: RunFacts = { status, workers, breaker, refusing_models, workers_absent_ms, ...(atServer ? { rollouts: phases } : {}) };
    const { status: counts, ...others } = facts;
    return { data: { ...counts, run_id, ...others }, lines: runLines(run_id, facts), exitCode: EXIT.ok };
  }
  const { found } = target;
  const worker = (await liveWorkers(queues)).find(({ worker_id }) => worker_id === found.worker_id) ?? null;
  const [last = null] = await readProgress(queues.redis, found.activation_id, 1);
  const [waits_for = null] = found.state === "delayed" ? await waitsFor(queues, [found.job_id]) : [];
  return {
    data: { ...found, waits_for, worker, last },
    lines: activationLines(found, waits_for, worker, last),
    exitCode: EXIT.ok,
  };
}

export interface RunFacts {
  status: RunStatus;
  workers: readonly Omit<WorkerLoad, "key_ids" | "schema_minor" | "store_id">[];
  breaker: BreakerState;
  /** Of a run with a resources server: those that have not ended. */
  rollouts?: Record<Phase, number>;
  refusing_models: readonly RefusingModel[];
  /** null = one lives. */
  workers_absent_ms: number | null;
}

/** For people. Pure. */
export function runLines(runId: string, { status, workers, breaker, refusing_models, workers_absent_ms, rollouts }: RunFacts): string[] {
  const { open, openings } = breaker;
  const ended = Object.entries(status.ended);
  const total = ended.reduce((sum, [, count]) => sum + count, 0);
  const { running, waiting, parked, delayed } = status;
  const lines = [
    `run ${runId}: ${total} ended${total === 0 ? "" : ` (${ended.map(([name, count]) => `${count} ${name}`).join(", ")})`}, ` +
      `${running} running, ${waiting} waiting, ${parked} parked${why(parkedBecause(status, breaker, parked))}, ` +
      `${delayed} delayed${why(delayedBecause(status))}`,
  ];
  if (rollouts !== undefined)
    lines.push(
      `with their resources server: ${Object.entries(rollouts)
        .map(([phase, count]) => `${count} ${phase}`)
        .join(", ")}`,
    );
  if (status.pause !== null) lines.push(`paused${pausedBy(status.pause)}`);
  const cause = openings.at(-1);
  if (open !== null && cause !== undefined) {
    const next = open.retry_in_ms === null ? "it does not try again by itself" : `tries again in ${durationText(open.retry_in_ms)}`;
    lines.push(`paused by its breaker since ${cause.opened_at}: ${cause.activations.length} failed alike (${cause.cause_code}); ${next}`);
  }
  if (status.limit !== null) lines.push(`limit: ${status.limit} at once`);
  lines.push(...budgetLines(status.budget));
  for (const { server, since, for_ms, waiting: sessions } of refusing_models)
    lines.push(
      `model server ${server}: refusing since ${since} (${durationText(for_ms)}), none served meanwhile; ${sessions} sessions wait`,
    );
  const since = workers_absent_ms === null || workers_absent_ms < 1_000 ? "" : `, for ${durationText(workers_absent_ms)} at least`;
  const wait = waiting + parked + delayed === 0 ? "" : `; ${waiting + parked + delayed} wait: start one with \`rollcall worker\``;
  lines.push(workers.length === 0 ? `no worker lives${since}${wait}` : `workers: ${workers.length}`);
  for (const { worker_id, host, pid, running: busy, lease_ends_in_ms, held_back } of workers) {
    const why = held_back === null ? "" : `; takes nothing: ${held_back}`;
    lines.push(
      `  ${worker_id}: process ${pid} on ${host}, ${busy} running, lease ends in ${durationText(lease_ends_in_ms)} unless renewed${why}`,
    );
  }
  return lines.map(printable);
}

function why(reasons: readonly string[]): string {
  return reasons.length === 0 ? "" : ` (${reasons.join(", ")})`;
}

/** The gate holds all of a run back for the same reason. */
function parkedBecause({ paused, limit, budget }: RunStatus, { open }: BreakerState, parked: number): string[] {
  if (parked === 0) return [];
  if (paused) return ["the run is paused"];
  if (budget.spent !== null) return ["its budget is spent"];
  if (open !== null) return ["by its breaker"];
  return limit === null ? ["about to go on"] : ["as many run as may"];
}

function budgetLines({ max_tokens, max_model_calls, not_after, used, spent }: BudgetState): string[] {
  const parts = [
    ...(max_tokens === null ? [] : [`${amount(used.tokens)} of ${amount(max_tokens)} tokens used`]),
    ...(max_model_calls === null ? [] : [`${amount(used.model_calls)} of ${amount(max_model_calls)} model calls`]),
    ...(not_after === null ? [] : [`nothing starts after ${not_after}`]),
  ];
  return parts.length === 0 ? [] : [`budget${spent === null ? "" : ` (spent: ${spent})`}: ${parts.join(", ")}`];
}

function delayedBecause({ delayed_for, next_attempt_in_ms }: RunStatus): string[] {
  const { model_server, able_worker, next_attempt } = delayed_for;
  const first = next_attempt === 1 ? "in" : "the first in";
  return [
    ...(model_server === 0 ? [] : [`${model_server} for the model server`]),
    ...(able_worker === 0 ? [] : [`${able_worker} for a worker that can run it`]),
    ...(next_attempt === 0 ? [] : [`${next_attempt} until the next attempt, ${first} ${durationText(next_attempt_in_ms)}`]),
  ];
}

/** For people. `worker`: null = its lease is gone; undefined: not looked for. Pure. */
export function activationLines(
  found: Omit<FoundActivation, "job_id" | "begun" | "task_id"> & { rollout?: RolloutNow | null | undefined },
  waits: WaitsFor | null,
  worker: { host: string; pid: number } | null | undefined,
  last: { at: string; stage: string; note?: string | undefined } | null,
): string[] {
  const { activation_id, state, status, run_id, generation, attempt, charged, worker_id, due_at, cancel, rollout } = found;
  const holder = worker === undefined ? "" : worker === null ? " (its lease is gone)" : ` (process ${worker.pid} on ${worker.host})`;
  const held = worker_id === null ? "" : `, by ${worker_id}${holder}`;
  const lines = [
    `${activation_id}: ${state}: ${waits === null ? answerTo("status", state).text : WAITS[waits]}${status === null ? "" : `: ${status}`}${held}`,
    `  run ${run_id ?? "unknown"}, generation ${generation}, ${attempt === null ? "" : `attempt ${attempt}, `}${charged} charged`,
  ];
  if (rollout != null) lines.push(`  rollout: ${rolloutText(rollout)}`);
  if (due_at !== null) lines.push(`  looked at again at ${due_at} at the latest`);
  if (cancel !== null) lines.push(`  cancel asked by ${cancel.by} at ${cancel.at}${cancel.reason === "" ? "" : ` (${cancel.reason})`}`);
  if (last !== null && state !== "ended")
    lines.push(`  last seen ${last.at}: ${last.stage}${last.note === undefined ? "" : `, ${last.note}`}`);
  return lines.map(printable);
}

const PHASE_WORDS: Record<RolloutNow["state"], string> = {
  waiting: "waits for a place at its resources server, or for its next attempt",
  seeding: "its resources server prepares its session",
  activation: "in its session",
  verifying: "its resources server scores it",
  closing: "its session is being closed",
  ended: "over",
};

/** Where it is with its resources server, for people. Pure. */
function rolloutText({ state, attempt, failed_attempts, failed_tries, unreachable_since, reward }: RolloutNow): string {
  return [
    PHASE_WORDS[state],
    ...(state === "ended" ? [reward === null ? "no reward" : `reward ${reward}`] : [`attempt ${attempt}`]),
    ...(failed_attempts === 0 ? [] : [`failed attempts: ${failed_attempts}`]),
    ...(failed_tries === 0 ? [] : [`failed tries: ${failed_tries}`]),
    ...(unreachable_since === null ? [] : [`the server is out of reach since ${unreachable_since}`]),
  ].join(", ");
}
