// SPDX-License-Identifier: Apache-2.0
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { exactProfile } from "../../src/codex/profile.ts";
import { codexBinOf } from "./binaries.ts";
import { compareSession, tellable, type Difference } from "./compare.ts";
import { catalogueOf, defaultModels, kindOf, type MatrixModel } from "./models.ts";
import { expectedOffer } from "./offers.ts";
import type { Row, VersionReport } from "./report.ts";
import { GRANTS, runVersion, sessionsOf, type Session, type VersionRun } from "./run.ts";
import type { Scenario } from "./scenario.ts";
import { startServers, type Servers } from "./servers.ts";

export interface MatrixOptions {
  version: string;
  scenarios: readonly Scenario[];
  /** Names; default one of each kind. */
  models?: readonly string[];
  concurrency: number;
  /** Everything of the run is kept under this directory. */
  keep?: string;
}

/** Runs the scenarios with one Codex version and compares. Throws Error when the version cannot be had. */
export async function runMatrix(options: MatrixOptions): Promise<VersionReport> {
  const { version, scenarios, concurrency, keep } = options;
  const codexBin = await codexBinOf(version);
  const catalogue = await catalogueOf(codexBin);
  const models = options.models?.map((name) => ({ name, kind: kindOf(catalogue, name) })) ?? defaultModels(catalogue);
  const dir = keep === undefined ? await mkdtemp(join(tmpdir(), "codex-matrix-")) : resolve(keep, version);
  const servers = await startServers();
  try {
    const run = await runVersion(sessionsOf(scenarios, models, version), { version, codexBin, servers, dir, concurrency });
    return reportOf(run, version, models, servers);
  } finally {
    await servers.close();
    if (keep === undefined) await rm(dir, { recursive: true, force: true });
  }
}

function reportOf(run: VersionRun, version: string, models: readonly MatrixModel[], servers: Servers): VersionReport {
  return {
    version,
    profiled: exactProfile(version) !== null,
    models: Object.fromEntries(models.map(({ name, kind }) => [kind, name])),
    seconds: run.seconds,
    rows: [...run.sessions].sort((one, other) => one.order - other.order).map((session) => rowOf(session, run, version, servers)),
    run: summaryDifferences(run, servers, version),
  };
}

function rowOf({ id, scenario, model }: Session, run: VersionRun, version: string, servers: Servers): Row {
  const result = run.results.get(id);
  const { kind } = model;
  if (result === undefined) {
    const found = `the command ended with ${run.ended.code}: ${run.ended.said.slice(-300)}`;
    return { scenario: scenario.name, kind, differences: [{ aspect: "result", expected: "a result", found }] };
  }
  const granted = (scenario.grants ?? GRANTS).filter(({ server = "" }) => !/refuses|no tools/.test(server)).map(({ name }) => name);
  const differences = compareSession({
    scenario,
    version,
    kind,
    result,
    threadsOf: (captureKey) => servers.log.threadsOf(captureKey),
    calls: servers.callsOf(id),
    offer: expectedOffer(scenario, kind, version, granted),
  });
  return { scenario: scenario.name, kind, differences };
}

/** The run's own sum, against all that the model servers sent in it. */
function summaryDifferences({ summary, results, sessions }: VersionRun, { log }: Servers, version: string): Difference[] {
  const threads = sessions.flatMap(({ id, scenario }) =>
    (results.get(id)?.attempts ?? []).flatMap(({ capture_key }) => tellable(log.threadsOf(capture_key), version, scenario)),
  );
  const sum = (kind: "input_tokens" | "output_tokens"): number => threads.reduce((total, { usage }) => total + usage[kind], 0);
  const expected = `in ${sum("input_tokens")} out ${sum("output_tokens")}`;
  const found = summary === null ? "no summary.json" : `in ${summary.usage.input_tokens} out ${summary.usage.output_tokens}`;
  return expected === found ? [] : [{ aspect: "summary", expected, found }];
}
