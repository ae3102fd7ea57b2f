// SPDX-License-Identifier: Apache-2.0
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { readLines } from "../../scripts/chaos/gather.ts";
import type { ModelCalls } from "../../scripts/chaos/model.ts";
import { readJson } from "../../scripts/chaos/watch.ts";
import { attemptNumbers } from "../../src/artifacts/layout.ts";
import { parseCaptureKey } from "../../src/contract/identity.ts";
import type { ActivationResult, Attempt } from "../../src/contract/result.ts";

/** What became of one activation whose process was to be killed. */
export interface Killed {
  /** kill-<point>.<n> */
  name: string;
  /** The point was reached. */
  died: boolean;
  /** result.json */
  result: ActivationResult | null;
  /** How often it is in results.jsonl, in the results queue, and came to its consumer. */
  lines: number;
  delivered: number;
  consumed: number;
  /** Codex sessions that asked the model, by attempt. */
  sessions: { attempt: number; count: number }[];
  /** attempt.json of each attempt that has one. */
  saved: Attempt[];
  charged: number;
}

/** Puts together what became of one: from the program's files, and from everybody who saw it. */
export function gatherKilled(parts: {
  name: string;
  /** Of its activation. */
  id: string;
  /** Names of those whose process died. */
  died: ReadonlySet<string>;
  out: string;
  artifacts: string;
  /** Activation ids, as often as they came. */
  delivered: readonly string[];
  consumed: readonly string[];
  calls: readonly ModelCalls[];
  charged: number;
}): Killed {
  const { name, id, out, artifacts, charged } = parts;
  const attempts = parts.calls.map(({ capture_key }) => parseCaptureKey(capture_key)).filter(({ rollout_id }) => rollout_id === name);
  const numbers = [...new Set(attempts.map(({ attempt }) => attempt))].sort((a, b) => a - b);
  const results = join(out, "results.jsonl");
  return {
    name,
    died: parts.died.has(name),
    result: readJson(join(artifacts, id, "result.json")) as ActivationResult | null,
    lines: existsSync(results) ? readLines(results).filter(({ task_id }) => task_id === name).length : 0,
    delivered: parts.delivered.filter((each) => each === id).length,
    consumed: parts.consumed.filter((each) => each === id).length,
    sessions: numbers.map((number) => ({ attempt: number, count: attempts.filter(({ attempt }) => attempt === number).length })),
    saved: savedAttempts(join(artifacts, id)),
    charged,
  };
}

function savedAttempts(directory: string): Attempt[] {
  if (!existsSync(directory)) return [];
  return attemptNumbers(readdirSync(directory)).flatMap((number) => {
    const attempt = readJson(join(directory, `attempt-${number}`, "attempt.json")) as Attempt | null;
    return attempt === null ? [] : [attempt];
  });
}
