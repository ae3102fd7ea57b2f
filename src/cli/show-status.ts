// SPDX-License-Identifier: Apache-2.0
import { answerTo } from "../queue/answers.ts";
import { breakerState, type BreakerState } from "../queue/breaker.ts";
import type { FoundActivation } from "../queue/find-activation.ts";
import { readProgress } from "../queue/progress.ts";
import { runStatus, type RunStatus } from "../queue/run-status.ts";
import { liveWorkers } from "../queue/worker-lease.ts";
import { workerLoads, type WorkerLoad } from "../queue/worker-loads.ts";
import { EXIT } from "../rollout/exit-code.ts";
import { pausedBy } from "../rollout/paused.ts";
import { printable } from "../rollout/printable.ts";
import { duration } from "../rollout/summary-table.ts";
import type { Reply } from "./control-actions.ts";
import type { Target } from "./control-target.ts";
import type { Desk } from "./desk.ts";

/** The answer of `rollcall status`. */
export async function showStatus({ queues }: Desk, target: Target): Promise<Reply> {
  if (target.kind === "run") {
    const { run_id } = target;
    const [status, workers, breaker] = await Promise.all([
      runStatus(queues, run_id),
      workerLoads(queues, run_id),
      breakerState(queues, run_id),
    ]);
    return { data: { ...status, run_id, breaker, workers }, lines: runLines(run_id, status, workers, breaker), exitCode: EXIT.ok };
  }
  const { found } = target;
  const worker = (await liveWorkers(queues)).find(({ worker_id }) => worker_id === found.worker_id) ?? null;
  const [last = null] = await readProgress(queues.redis, found.activation_id, 1);
  return {
    data: { ...found, worker, last },
    lines: activationLines(found, worker, last),
    exitCode: EXIT.ok,
  };
}

export function runLines(runId: string, status: RunStatus, workers: readonly WorkerLoad[], { open, openings }: BreakerState): string[] {
  const ended = Object.entries(status.ended);
  const total = ended.reduce((sum, [, count]) => sum + count, 0);
  const { running, waiting, parked, delayed } = status;
  const lines = [
    `run ${runId}: ${total} ended${total === 0 ? "" : ` (${ended.map(([name, count]) => `${count} ${name}`).join(", ")})`}, ` +
      `${running} running, ${waiting} waiting, ${parked} parked, ${delayed} delayed`,
  ];
  if (status.pause !== null) lines.push(`paused${pausedBy(status.pause)}`);
  const cause = openings.at(-1);
  if (open !== null && cause !== undefined) {
    const next = open.retry_in_ms === null ? "it does not try again by itself" : `tries again in ${duration(open.retry_in_ms)}`;
    lines.push(`paused by its breaker since ${cause.opened_at}: ${cause.activations.length} failed alike (${cause.cause_code}); ${next}`);
  }
  if (status.limit !== null) lines.push(`limit: ${status.limit} at once`);
  lines.push(workers.length === 0 ? "no worker lives" : `workers: ${workers.length}`);
  for (const { worker_id, host, pid, running: busy, lease_ends_in_ms, held_back } of workers) {
    const why = held_back === null ? "" : `; takes nothing: ${held_back}`;
    lines.push(
      `  ${worker_id}: process ${pid} on ${host}, ${busy} running, lease ends in ${duration(lease_ends_in_ms)} unless renewed${why}`,
    );
  }
  return lines.map(printable);
}

function activationLines(
  found: FoundActivation,
  worker: { host: string; pid: number } | null,
  last: { at: string; stage: string; note?: string } | null,
): string[] {
  const { activation_id, state, status, run_id, generation, attempt, charged, worker_id, due_at, cancel } = found;
  const held =
    worker_id === null ? "" : `, by ${worker_id}${worker === null ? " (its lease is gone)" : ` (process ${worker.pid} on ${worker.host})`}`;
  const lines = [
    `${activation_id}: ${state}: ${answerTo("status", state).text}${status === null ? "" : `: ${status}`}${held}`,
    `  run ${run_id ?? "unknown"}, generation ${generation}, ${attempt === null ? "" : `attempt ${attempt}, `}${charged} charged`,
  ];
  if (due_at !== null) lines.push(`  looked at again at ${due_at} at the latest`);
  if (cancel !== null) lines.push(`  cancel asked by ${cancel.by} at ${cancel.at}${cancel.reason === "" ? "" : ` (${cancel.reason})`}`);
  if (last !== null && state !== "ended")
    lines.push(`  last seen ${last.at}: ${last.stage}${last.note === undefined ? "" : `, ${last.note}`}`);
  return lines.map(printable);
}
