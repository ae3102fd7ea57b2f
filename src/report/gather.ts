// SPDX-License-Identifier: Apache-2.0
import { join } from "node:path";
import type { EvidenceSource } from "../artifacts/open-evidence.ts";
import { OUTPUT_FILES } from "../rollout/output-dir.ts";
import { countFailedAttempts } from "./failed-attempts.ts";
import { measure, type MeasuredRow, type Metrics } from "./metrics.ts";
import { readModelTraffic } from "./model-traffic.ts";
import { openRun, readRows, type RecordedRun } from "./read-run.ts";

export interface GatherOptions {
  /** Also while a process works on it. */
  partial: boolean;
  /** A repeat passes with at least this reward. */
  passThreshold: number;
  /** Where the evidence is, given its place unless the settings say otherwise. */
  readonly openEvidence: (defaultRoot: string) => Promise<EvidenceSource>;
}

export interface GatheredRun {
  run: RecordedRun;
  rows: MeasuredRow[];
  metrics: Metrics;
}

/** Everything that a report or a comparison says of an output directory. Throws what {@link openRun} and `openEvidence` throw. */
export async function gatherRun(path: string, { partial, passThreshold, openEvidence }: GatherOptions): Promise<GatheredRun> {
  const run = await openRun(path, { partial });
  const store = await openEvidence(join(run.path, OUTPUT_FILES.artifacts));
  const rows: MeasuredRow[] = [];
  for (const row of (await readRows(run)).values()) rows.push({ ...row, traffic: await readModelTraffic(store, row) });
  return { run, rows, metrics: measure(run, rows, await countFailedAttempts(run), { passThreshold }) };
}
