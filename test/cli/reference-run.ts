// SPDX-License-Identifier: Apache-2.0
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished } from "vitest";
import { startModelServer } from "../../examples/stand-ins/model-server.ts";
import type { ActivationResult } from "../../src/contract/result.ts";
import type { Metrics } from "../../src/report/metrics.ts";
import type { Coverage } from "../../src/rollout/coverage.ts";
import type { Summary } from "../../src/rollout/summary.ts";
import { ModelTally } from "../support/model-tally.ts";
import { ROLLOUTS } from "../support/reference-rows.ts";
import { rollcall, type CommandEnd } from "../support/rollcall-command.ts";
import { tempDir } from "../support/temp-dir.ts";

const KEY = "key-of-the-220";

/** A run of the reference rows, all that it wrote, and what the model server counted meanwhile. */
export interface ReferenceRun {
  ended: CommandEnd;
  out: string;
  results: ReadonlyMap<string, ActivationResult>;
  summary: Summary;
  coverage: Coverage;
  metrics: Metrics;
  tally: ModelTally;
}

/** Runs the rows by the command, on the real Codex; six at once. Everything ends with the test. */
export async function runReference(
  rows: readonly object[],
  flags: (out: string) => readonly string[] | Promise<readonly string[]>,
): Promise<ReferenceRun> {
  const root = tempDir();
  const out = join(root, "out");
  const tally = new ModelTally();
  const model = await startModelServer({ apiKey: KEY, replyDelayMs: 20, log: tally });
  onTestFinished(() => model.close());
  writeFileSync(join(root, "tasks.jsonl"), rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
  const env = { OPENAI_API_KEY: KEY, XDG_STATE_HOME: join(root, "state") };
  const args = ["--out", out, "--model", "stand-in", "--model-base-url", model.captureBaseUrl, "--concurrency", "6", ...(await flags(out))];
  const ended = await rollcall(["run", join(root, "tasks.jsonl"), ...args], { env });
  expect(ended).toMatchObject({ code: 1 });
  const read = (name: string): unknown => JSON.parse(readFileSync(join(out, name), "utf8"));
  const lines = readFileSync(join(out, "results.jsonl"), "utf8").split("\n").filter(Boolean);
  const results = lines.map((line) => JSON.parse(line) as ActivationResult);
  expect(lines).toHaveLength(ROLLOUTS);
  expect(new Set(results.map(({ activation_id }) => activation_id)).size).toBe(ROLLOUTS);
  const report = await rollcall(["report", out, "--json"], { env });
  expect(report).toMatchObject({ code: 0, stderr: "" });
  expect(await rollcall(["report", out], { env })).toMatchObject({ code: 0, stderr: "" });
  return {
    ended,
    out,
    results: new Map(results.map((result) => [result.task_id.task_id, result])),
    summary: read("summary.json") as Summary,
    coverage: read("coverage.json") as Coverage,
    metrics: JSON.parse(report.stdout) as Metrics,
    tally,
  };
}
