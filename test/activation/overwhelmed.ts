// SPDX-License-Identifier: Apache-2.0
import { fileURLToPath } from "node:url";
import type { CodexBinary } from "../../src/codex/binary.ts";
import type { ActivationResult } from "../../src/contract/result.ts";
import { attemptRunner } from "../support/attempt.ts";
import { profileFor } from "../../src/codex/profile.ts";

const FAKES = fileURLToPath(new URL("../support/fake-codex", import.meta.url));
const SAMPLE_MS = 10;
const MiB = 1_048_576;

const OVERWHELMING: CodexBinary = {
  version: "0.144.4",
  profile: profileFor("0.144.4"),
  key: "fake-overwhelms",
  hostDir: FAKES,
  entry: "overwhelms",
  only: ["overwhelms"],
  tools: null,
  bwrap: null,
};

export interface Overwhelmed {
  result: ActivationResult;
  /** By how much this process grew at most meanwhile, in MiB. */
  grown: number;
  /** Of a gap: its facts, in order. */
  gaps: (code: string) => unknown[];
}

/** Runs a session by the real straight line whose Codex does what `prompt` says (test/support/fake-codex/overwhelms), after a small one. */
export async function overwhelm(dir: string, prompt: string, more: Record<string, unknown> = {}): Promise<Overwhelmed> {
  const runner = await attemptRunner(dir, OVERWHELMING);
  const run = async (task_id: string, input: string): Promise<ActivationResult> => {
    const codex = { timeout_seconds: 3_600, session_close_timeout_seconds: 600 };
    const row = { task_id: { taskset: "t", task_id }, input, max_attempts: 1, sandbox: { provider: "host" }, codex, ...more };
    const { result } = await runner.outcome(row);
    if (result === null) throw new Error("it would be retried");
    return result;
  };
  await run("small", "events 1000");
  const before = process.memoryUsage().rss;
  const peakBefore = process.resourceUsage().maxRSS * 1_024;
  let most = before;
  const sampler = setInterval(() => (most = Math.max(most, process.memoryUsage.rss())), SAMPLE_MS);
  try {
    const result = await run("large", prompt);
    const peak = process.resourceUsage().maxRSS * 1_024;
    if (peak > peakBefore) most = Math.max(most, peak); // also what no sample saw
    const gaps = (code: string): unknown[] =>
      result.observations.gaps.flatMap((gap) => (gap.code === code ? [JSON.parse(gap.detail ?? "null")] : []));
    return { result, grown: (most - before) / MiB, gaps };
  } finally {
    clearInterval(sampler);
  }
}
