// SPDX-License-Identifier: Apache-2.0
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { attemptNumbers } from "../../src/artifacts/layout.ts";
import { parseCaptureKey, safeName } from "../../src/contract/identity.ts";
import type { ActivationResult, Attempt } from "../../src/contract/result.ts";
import type { OfficeCall } from "../../examples/stand-ins/office-tools.ts";
import type { FinishCall, PhysicalRun, RunFacts, StoredEnd } from "./facts.ts";
import type { ModelCalls } from "./model.ts";
import { digestOf, modifiedAt, namesIn, readJson, type Watch } from "./watch.ts";

/** Lines of results.jsonl. */
export function readLines(path: string): RunFacts["lines"] {
  return (existsSync(path) ? readFileSync(path, "utf8") : "")
    .split("\n")
    .filter(Boolean)
    .map((text) => {
      const { task_id, capture_key, status } = JSON.parse(text) as ActivationResult;
      return { task_id: task_id.task_id, capture_key, status };
    });
}

/** Every result.json of a store. */
export function readEnds(artifacts: string, firstSeen: Watch["ends"]): StoredEnd[] {
  return namesIn(artifacts).flatMap((id) => {
    const path = join(artifacts, id, "result.json");
    const result = readJson(path) as ActivationResult | null;
    if (result === null) return [];
    const { activation_id, task_id, generation, status, capture_key, episode_id, evidence, failure, incomplete_cause } = result;
    return [
      {
        activation_id,
        task_id: task_id.task_id,
        generation,
        status,
        cause: failure === null ? (incomplete_cause ?? "") : `${failure.failure_kind}/${failure.cause_code}`,
        capture_key,
        attempt: episode_id.attempt,
        attempts: result.attempts.map(({ attempt }) => attempt),
        finish_calls: evidence === null ? null : (evidence.tools_called["finish"] ?? 0),
        committed_at: modifiedAt(path),
        changed: firstSeen.has(id) && firstSeen.get(id) !== digestOf(path),
      },
    ];
  });
}

/** All attempts that began, put together from everything that saw one. */
export function readRuns(artifacts: string, watch: Watch, calls: readonly ModelCalls[]): PhysicalRun[] {
  const runs = new Map<string, PhysicalRun>();
  function note(activation_id: string, attempt: number, began_at: number): PhysicalRun {
    const key = `${activation_id} ${attempt}`;
    const run = runs.get(key) ?? { activation_id, attempt, worker_pid: null, began_at, sandboxes: 0, threads: [], saved: null };
    run.began_at = Math.min(run.began_at, began_at);
    runs.set(key, run);
    return run;
  }
  for (const { record, first_at } of watch.sandboxes) {
    const { activation_id, attempt, process } = record.owner;
    if (!isTask(activation_id)) continue; // a worker tries its sandboxes when it starts
    const run = note(activation_id, attempt, first_at);
    run.worker_pid = process.pid;
    run.sandboxes++;
  }
  const activationOf = new Map<string, string>();
  for (const id of namesIn(artifacts)) {
    for (const number of attemptNumbers(namesIn(join(artifacts, id)))) {
      const attempt = readJson(join(artifacts, id, `attempt-${number}`, "attempt.json")) as Attempt | null;
      if (attempt === null) continue;
      const { failure } = attempt;
      const run = note(id, number, Date.parse(attempt.started_at));
      run.worker_pid ??= pidOfWorker(attempt.worker.id);
      run.saved = {
        status: attempt.status,
        failure_kind: failure?.failure_kind ?? null,
        cause_code: failure?.cause_code ?? null,
        terminal: failure?.terminal ?? true,
        charged: attempt.charged,
        ended_at: Date.parse(attempt.ended_at),
      };
    }
  }
  for (const id of [...namesIn(artifacts), ...watch.sandboxes.map(({ record }) => record.owner.activation_id)])
    activationOf.set(rolloutOf(id), id);
  for (const { capture_key, thread_id, first_at } of calls) {
    const { rollout_id, attempt } = parseCaptureKey(capture_key);
    const run = note(activationOf.get(rollout_id) ?? rollout_id, attempt, first_at);
    if (!run.threads.includes(thread_id)) run.threads.push(thread_id);
  }
  return [...runs.values()];
}

function isTask(activationId: string): boolean {
  return /chaos-\d+$/.test(activationId);
}

/** Of `act-<run_id>-<safe task name>`: tasks of this run are called chaos-<number>. */
function rolloutOf(activationId: string): string {
  return safeName(/chaos-\d+$/.exec(activationId)?.[0] ?? activationId);
}

/** A worker is called `<host>-<pid>-<random>`. */
function pidOfWorker(workerId: string): number | null {
  const pid = /-(\d+)-[0-9a-f]+$/.exec(workerId)?.[1];
  return pid === undefined ? null : Number(pid);
}

/** Served finish calls; a session is called by its task's id, and a secret. */
export function finishesOf(calls: readonly OfficeCall[]): FinishCall[] {
  return calls
    .filter(({ tool, outcome }) => tool === "finish" && outcome === "ok")
    .map(({ session_id, thread_id, started_at }) => ({ task_id: session_id?.split(" ")[0] ?? "", thread_id, at: started_at }));
}
