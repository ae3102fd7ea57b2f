// SPDX-License-Identifier: Apache-2.0
import { basename } from "node:path";
import type { ActivationResult } from "../../src/contract/result.ts";
import type { ExpectedOutcome } from "./office-tasks.ts";

/** What of a result is compared. */
export type ComparedResult = Pick<ActivationResult, "capture_key" | "status"> & {
  task_id: { task_id: string };
  failure: { cause_code: string } | null;
  evidence: Pick<NonNullable<ActivationResult["evidence"]>, "tools_called"> | null;
  attempts: readonly unknown[];
  artifacts: readonly Pick<ActivationResult["artifacts"][number], "kind" | "path" | "source">[];
};

/**
 * One line for each point in which a task did not end as expected, beginning with its id and a colon; none = all is well. With
 * `modelCalls` (e.g. the stand-in's `log.countOf`) the calls of the model are compared, too. Pure.
 */
export function compareWithExpected(
  expected: readonly ExpectedOutcome[],
  results: readonly ComparedResult[],
  modelCalls?: (captureKey: string) => number,
): string[] {
  const byTask = new Map(results.map((result) => [result.task_id.task_id, result]));
  const known = new Set(expected.map(({ id }) => id));
  return [
    ...expected.flatMap((outcome) => {
      const result = byTask.get(outcome.id);
      if (result === undefined) return [`${outcome.id}: it has no result`];
      return differences(outcome, result, modelCalls?.(result.capture_key)).map((text) => `${outcome.id}: ${text}`);
    }),
    ...[...byTask.keys()].filter((id) => !known.has(id)).map((id) => `${id}: nobody expected a result of it`),
  ];
}

function* points(expected: ExpectedOutcome, result: ComparedResult): Generator<[what: string, expected: unknown, found: unknown]> {
  yield ["status", expected.status, result.status];
  yield ["cause", expected.cause_code, result.failure?.cause_code ?? null];
  yield ["attempts", expected.attempts, result.attempts.length];
  const handedIn = result.artifacts.filter(({ kind }) => kind === "submission").map(({ path, source }) => basename(source ?? path));
  yield ["files handed in", [...expected.deliverables].sort().join(", "), handedIn.sort().join(", ")];
}

function differences(expected: ExpectedOutcome, result: ComparedResult, modelCalls: number | undefined): string[] {
  const found = [...points(expected, result)]
    .filter(([, wanted, actual]) => wanted !== actual)
    .map(([what, wanted, actual]) => `${what}: expected ${JSON.stringify(wanted)}, got ${JSON.stringify(actual)}`);
  // Only calls that went well are counted in a result, so a tool whose every call failed is missing, too.
  const missing = expected.tools.filter((tool) => (result.evidence?.tools_called[tool] ?? 0) === 0);
  if (missing.length > 0) found.push(`tools not called: ${missing.join(", ")}`);
  if (modelCalls !== undefined && (expected.status === "completed" ? modelCalls < expected.min_model_calls : modelCalls > 0)) {
    found.push(
      `model calls: expected ${expected.status === "completed" ? `at least ${expected.min_model_calls}` : "none"}, got ${modelCalls}`,
    );
  }
  return found;
}
