// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import { compareWithExpected, type ComparedResult } from "../../examples/stand-ins/compare.ts";
import { expectedOutcomes, type ExpectedOutcome } from "../../examples/stand-ins/office-tasks.ts";

const EXPECTED = expectedOutcomes();

function asExpected({ id, status, cause_code, attempts, tools, deliverables }: ExpectedOutcome): ComparedResult {
  return {
    capture_key: id,
    status,
    task_id: { task_id: id },
    failure: cause_code === null ? null : { cause_code },
    evidence: { tools_called: Object.fromEntries(tools.map((tool) => [tool, 1])) },
    attempts: Array.from({ length: attempts }, () => ({})),
    artifacts: deliverables.map((name) => ({ kind: "submission", path: `submitted/${name}`, source: `/workspace/${name}` })),
  };
}

const enoughCalls = (key: string): number => EXPECTED.find(({ id }) => id === key)?.min_model_calls ?? 0;

test("a batch that ended as expected has no difference", () => {
  expect(compareWithExpected(EXPECTED, EXPECTED.map(asExpected), enoughCalls)).toEqual([]);
});

test("each point that differs is named with its task", () => {
  const results = EXPECTED.map(asExpected);
  const [reconciliation, vat, expenses, currency] = results as [ComparedResult, ComparedResult, ComparedResult, ComparedResult];
  reconciliation.status = "failed";
  reconciliation.failure = { cause_code: "unknown" };
  vat.artifacts = [];
  expenses.evidence = { tools_called: { finish: 1 } };
  currency.attempts = [{}, {}];
  expect(compareWithExpected(EXPECTED, [...results.slice(0, -1), { ...vat, task_id: { task_id: "stranger" } }])).toEqual([
    'invoice-reconciliation: status: expected "completed", got "failed"',
    'invoice-reconciliation: cause: expected null, got "unknown"',
    'vat-return-draft: files handed in: expected "vat.csv", got ""',
    "expense-report-check: tools not called: fetch_web_page, web_search",
    "currency-conversion: attempts: expected 1, got 2",
    "archive-lookup: it has no result",
    "stranger: nobody expected a result of it",
  ]);
});

test("too few calls of the model, or any where there must be none, are differences", () => {
  const differences = compareWithExpected(EXPECTED, EXPECTED.map(asExpected), () => 3);
  expect(differences).toContain("invoice-reconciliation: model calls: expected at least 8, got 3");
  expect(differences).toContain("archive-lookup: model calls: expected none, got 3");
});
