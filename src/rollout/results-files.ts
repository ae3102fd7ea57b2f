// SPDX-License-Identifier: Apache-2.0
import type { ActivationResult } from "../contract/result.ts";
import { factsOf, type ResultFacts } from "./facts.ts";
import { openJsonLines } from "./json-lines.ts";

export interface ResultsFiles {
  /** What is recorded, by activation id: the last line counts. */
  readonly recorded: ReadonlyMap<string, ResultFacts>;
  /** What was repaired or ignored on opening, for people. */
  readonly remarks: readonly string[];
  /** What of it is not recorded yet: its generation, or only that it was verified once more; null: nothing. */
  newsOf(result: ActivationResult): "generation" | "verification" | null;
  /** Appends a result with news, with `more` fields, and its failed attempts, durably. Without any it is not written again (false). */
  take(result: ActivationResult, more?: Readonly<Record<string, unknown>>): Promise<boolean>;
  /** Its line no longer counts: the result itself is gone. */
  forget(activationId: string): void;
  close(): Promise<void>;
}

/** Opens results.jsonl (one line per end) and failures.jsonl (one per failed attempt), cutting off torn last lines. */
export async function openResultsFiles(paths: { results: string; failures: string }): Promise<ResultsFiles> {
  const recorded = new Map<string, ResultFacts>();
  const failedAttempts = new Set<string>();
  const failures = await openJsonLines(paths.failures, (value) => {
    const { activation_id, attempt } = value as { activation_id?: unknown; attempt?: unknown };
    failedAttempts.add(attemptKey(String(activation_id), Number(attempt)));
  });
  let foreign = 0;
  const results = await openJsonLines(paths.results, (value) => {
    const facts = factsOf(value);
    if (facts === null) foreign++;
    else recorded.set(facts.activation_id, facts);
  });

  function newsOf({ activation_id, generation, rollout, status }: ActivationResult): ReturnType<ResultsFiles["newsOf"]> {
    const before = recorded.get(activation_id);
    if (before === undefined || (before.refused_row && status !== "refused") || before.generation < generation) return "generation";
    const more = before.generation === generation && (rollout?.verifications ?? 0) > (before.rollout?.verifications ?? 0);
    return more ? "verification" : null;
  }

  return {
    recorded,
    newsOf,
    remarks: [...remarks("results.jsonl", results, foreign), ...remarks("failures.jsonl", failures, 0)],
    async take(result, more = {}) {
      if (newsOf(result) === null) return false;
      const facts = factsOf(result);
      if (facts === null) throw new Error(`the result of ${result.activation_id} lacks required fields`);
      recorded.set(result.activation_id, facts); // before the first await: two calls with one result write one line
      // Failures first: after a crash between the two the result is taken again, and its attempts are known already.
      const failed = result.attempts.filter(
        ({ failure, attempt }) => failure !== null && !failedAttempts.has(attemptKey(result.activation_id, attempt)),
      );
      for (const { attempt } of failed) failedAttempts.add(attemptKey(result.activation_id, attempt));
      const { activation_id, run_id, generation, task_id } = result;
      await failures.append(failed.map((attempt) => ({ activation_id, run_id, generation, task_id, ...attempt })));
      await results.append([{ ...result, ...more }]);
      return true;
    },
    forget: (activationId) => void recorded.delete(activationId),
    async close() {
      await results.close();
      await failures.close();
    },
  };
}

/** Attempt numbers of an activation are never reused. */
function attemptKey(activationId: string, attempt: number): string {
  return `${activationId} ${attempt}`;
}

function remarks(name: string, file: { cutBytes: number; badLines: readonly number[] }, foreign: number): string[] {
  const found: string[] = [];
  if (file.cutBytes > 0) found.push(`${name}: a torn last line (${file.cutBytes} bytes, from a crash) was cut off`);
  if (file.badLines.length > 0) found.push(`${name}: not JSON and ignored: line ${file.badLines.slice(0, 20).join(", ")}`);
  if (foreign > 0) found.push(`${name}: ${foreign} lines are no results and were ignored`);
  return found;
}
