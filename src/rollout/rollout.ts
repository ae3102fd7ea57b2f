// SPDX-License-Identifier: Apache-2.0
import { newRunId } from "../contract/identity.ts";
import { refusedResult } from "../contract/refused.ts";
import type { BreakerMode } from "../queue/breaker-mode.ts";
import type { BreakerOpening } from "../queue/breaker.ts";
import { RollcallError } from "../errors.ts";
import { replaceFile } from "../host/files.ts";
import type { RetryPolicy } from "./again.ts";
import { openBudget, workedMs, type BatchBudget, type BudgetWatch } from "./budget.ts";
import { claimDirectory } from "./claim-directory.ts";
import { completing } from "./complete-results.ts";
import { coverageOf } from "./coverage.ts";
import { EXIT } from "./exit-code.ts";
import { makeEnqueuer, type Enqueuer } from "./enqueuer.ts";
import type { ResultFacts } from "./facts.ts";
import { checkWithReferences } from "./fetch-references.ts";
import type { Fleet } from "./fleet.ts";
import { openOutputDir, type Manifest, type OutputDir } from "./output-dir.ts";
import { describePlan, planWork, type WorkPlan } from "./plan.ts";
import type { Reporter } from "./progress.ts";
import { queueAgain } from "./queue-again.ts";
import { refusedRows } from "./refused-row.ts";
import { keepRowFile } from "./row-file.ts";
import { openResultsFiles, type ResultsFiles } from "./results-files.ts";
import { summarise, type Summary } from "./summary.ts";
import { describeBadRows, type TaskCheck, type TaskSource } from "./tasks.ts";
import { makeTally } from "./tally.ts";
import { workOff, type WorkEnd } from "./work-off.ts";

export interface BatchRequest {
  out: string;
  tasks: Omit<TaskSource, "runId">;
  skipInvalid: boolean;
  allowEmpty: boolean;
  retry: RetryPolicy;
  /** How many must begin before the rest is queued; null = 1 above 20 tasks. */
  probe: number | null;
  /** What the run does when different tasks fail alike. */
  breaker: BreakerMode;
  /** What it may use, with all earlier starts. */
  budget: BatchBudget;
  /** Settings under which results compare; another start in the same directory must have the same. */
  comparable: Manifest["settings"];
  /** The others, for the record. */
  otherSettings: Manifest["settings"];
  versions: Record<string, string>;
}

export interface BatchPorts {
  reporter: Reporter;
  openFleet(out: OutputDir, runId: string): Promise<Fleet>;
  /** Last checks before work is queued, e.g. that the model server answers. Throws RollcallError. */
  preflight(check: TaskCheck): Promise<void>;
  /** The input is good and the directory ours. */
  onAccepted(): void;
  /** Aborted once by a first signal (stop in order), `now` by a second one. */
  stop: { signal: AbortSignal; now: AbortSignal };
}

/**
 * One start of a batch: runs what is missing in the output directory and leaves one result per task in results.jsonl,
 * failed attempts in failures.jsonl, and summary.json. Throws RollcallError with exit code 2 when nothing may be run.
 */
export async function runBatch(request: BatchRequest, ports: BatchPorts): Promise<{ summary: Summary; summaryPath: string }> {
  const startedAt = performance.now(); // a clock that nobody sets
  const out = await openOutputDir(request.out);
  let summary: Summary;
  try {
    const runId = out.manifest?.run_id ?? newRunId();
    const source: TaskSource = { ...request.tasks, runId };
    const accept = (found: TaskCheck): void => requireRunnable(request, found);
    const check = await checkWithReferences(source, accept, (line) => ports.reporter.say(line)).catch((error: unknown) => {
      if (!ports.stop.signal.aborted) throw error;
      const message = "stopped while reference files were fetched; nothing was queued, and those that came are kept";
      throw new RollcallError("interrupted", message, { exitCode: EXIT.interrupted });
    });
    const claim = await claimDirectory(out, request, source, check);
    if (out.tookOverFrom !== null)
      ports.reporter.say(`the earlier start (process ${out.tookOverFrom}) was cut off; its lock was taken over`);
    for (const warning of check.warnings) ports.reporter.say(`warning: ${warning}`);
    ports.onAccepted();

    const total = check.rows * request.tasks.repeats;
    const budget = await openBudget(out.file("budget"), { runId, limits: request.budget, startedAt });
    const files = await openResultsFiles({ results: out.file("results"), failures: out.file("failures") });
    for (const remark of files.remarks) ports.reporter.say(remark);
    let ended: BatchEnd = { interrupted: true, budgetSpent: null, openings: [] }; // unless it comes to its end
    try {
      if (total === 0) {
        await claim();
        ended = { interrupted: false, budgetSpent: null, openings: [] };
      } else ended = await runMissing({ request, ports, claim, out, source, check, files, budget, total, startedAt });
    } finally {
      await files.close();
      const counted = onlyAsked(files, check);
      const { budgetSpent, ...more } = ended;
      const spending = await budget.end(budgetSpent);
      const asked = { runId, expected: total, ids: [...check.ids, ...check.refusedIds], budgetStopped: budgetSpent !== null };
      await replaceFile(out.file("coverage"), `${JSON.stringify(coverageOf(files.recorded, asked), null, 2)}\n`);
      summary = summarise(counted, { runId, total, wallMs: workedMs(spending), ...more, budget: spending });
      await replaceFile(out.file("summary"), `${JSON.stringify(summary, null, 2)}\n`);
    }
    return { summary, summaryPath: out.file("summary") };
  } finally {
    await out.close();
  }
}

interface Batch {
  request: BatchRequest;
  ports: BatchPorts;
  claim: () => Promise<void>;
  out: OutputDir;
  source: TaskSource;
  check: TaskCheck;
  files: ResultsFiles;
  budget: BudgetWatch;
  total: number;
  startedAt: number;
}

interface BatchEnd extends WorkEnd {
  openings: BreakerOpening[];
}

/** Plans, queues, works and takes in. */
async function runMissing(batch: Batch): Promise<BatchEnd> {
  const { request, ports, out, source, check, budget } = batch;
  const rows = await keepRowFile(out.file("rows"), source); // an earlier start may have had another --limit
  const fleet = await ports.openFleet(out, source.runId).catch(async (error: unknown) => {
    await rows.close();
    throw error;
  });
  try {
    const files = completing(batch.files, { out: out.path, rows, store: fleet.artifacts });
    const plan = await planWork(check.ids, files, fleet, request.retry);
    const sentence = describePlan(plan);
    if (sentence !== null) ports.reporter.say(sentence);
    const { spent } = await budget.begin(fleet);
    if (plan.work.size > 0 && spent === null) await ports.preflight(check);
    await batch.claim();
    if (plan.work.size > 0) await fleet.setBreaker(source.runId, request.breaker);
    const tally = makeTally({
      fleet,
      files,
      runId: source.runId,
      pending: new Set(plan.work.keys()),
      reporter: ports.reporter,
      total: batch.total,
      startedAt: batch.startedAt,
      budget,
      breaker: await fleet.breaker(source.runId),
      onForgotten: () =>
        queueAgain({
          runId: source.runId,
          fleet,
          budget,
          tally,
          plan,
          enqueuerOf,
          breaker: request.breaker,
          say: (text) => ports.reporter.say(text),
          signal: ports.stop.signal,
        }),
    });
    const enqueuerOf = (work: WorkPlan): Enqueuer =>
      makeEnqueuer(source, work, fleet, {
        endedBefore: (id) => tally.takeFromStore(id),
        noWorkerFor: (needs) =>
          ports.reporter.say(
            `no live worker has ${needs}: what needs it waits for one that has (queue.no_capable_worker_seconds), then fails`,
          ),
        async badRow(row) {
          const { runId, repeats } = source;
          for (const refused of refusedRows(row, { runId, repeats, taskset: source.defaults.taskset })) {
            if (files.recorded.has(refused.activation_id)) continue;
            await fleet.refuse(refused);
            await tally.record(refusedResult(runId, refused, new Date()));
          }
        },
      });
    const enqueuer = enqueuerOf(plan);
    try {
      const probes = spent === null ? (request.probe ?? (plan.work.size > 20 ? 1 : 0)) : 0; // nothing would begin
      const end = await workOff({ ...batch, fleet, tally, enqueuer, ...ports }, { planned: plan.work.size, probes });
      await budget.look(fleet); // since the last look
      return { ...end, openings: (await fleet.breaker(source.runId)).openings };
    } finally {
      await enqueuer.close();
      await tally.close();
    }
  } finally {
    await fleet.close();
    await rows.close();
  }
}

function requireRunnable(request: BatchRequest, check: TaskCheck): void {
  if (check.rows === 0 && !request.allowEmpty) {
    throw new RollcallError("tasks_empty", `${request.tasks.path} has no tasks; nothing was run (--allow-empty makes that a success)`);
  }
  if (check.badRows > 0 && !request.skipInvalid) {
    throw new RollcallError(
      "tasks_invalid",
      `${describeBadRows(request.tasks.path, check)}\nNothing was run. Correct them, or record them as refused with --skip-invalid.`,
    );
  }
}

/** Results of the rows this command line asks for: an earlier start may have had a higher --limit. */
function onlyAsked(files: ResultsFiles, check: TaskCheck): ResultFacts[] {
  const asked = new Set([...check.ids, ...check.refusedIds]);
  return [...files.recorded.values()].filter(({ activation_id }) => asked.has(activation_id));
}
