// SPDX-License-Identifier: Apache-2.0
import { readFileSync } from "node:fs";
import { beforeAll, describe, expect, it } from "vitest";
import { breakGuard } from "../../scripts/chaos/guards.ts";
import { D15_POINTS, KILL_PLACES, KILL_POINTS } from "../support/kill-points.ts";
import { runWithKills, type KillRun } from "../support/kill-rig.ts";
import { problemsOf, RIGHT } from "../support/kill-verdict.ts";

/** A minute or two on a machine of its own; the run itself gives up when nothing goes on. */
const TIMEOUT_MS = 3_600_000;

describe("the process at work is killed", () => {
  let run: KillRun;
  beforeAll(async () => {
    const more = D15_POINTS.map(({ name }) => `kill-${name}.1`);
    run = await runWithKills({ names: [...KILL_POINTS.map(({ name }) => `kill-${name}.0`), ...more], workers: 3 });
  }, TIMEOUT_MS);

  it.each(KILL_POINTS.map((point) => [point.title, RIGHT[point.phase], point] as const))("%s: %s", (_title, _right, { name, phase }) => {
    expect(problemsOf(run.killed.get(`kill-${name}.0`), phase)).toEqual([]);
  });

  it("after its exit, when it was read, saved, committed and delivered, twice each: none lost, none delivered twice [D15]", () => {
    const problems = D15_POINTS.flatMap(({ name, phase }) => [0, 1].map((n) => problemsOf(run.killed.get(`kill-${name}.${n}`), phase)));
    expect(problems).toEqual(Array.from({ length: 10 }, () => []));
  });

  it("and nothing is left: no process, directory, control group, uid lock, socket or secret", () => {
    expect(run.left).toEqual([]);
    expect(run.secrets).toEqual([]);
  });
});

it(
  "a program that does not look for a committed result is found out",
  async () => {
    const name = "commit-after";
    const { killed } = await runWithKills({
      names: [`kill-${name}.0`],
      workers: 1,
      change: (dist) => breakGuard(dist, "commit"),
    });
    expect(problemsOf(killed.get(`kill-${name}.0`), "ended")).toContain("Codex ran again, as attempt 1, after attempt 0 had ended it");
  },
  TIMEOUT_MS,
);

it.each([
  ["runActivation", "src/activation/run.ts"],
  ["recordEnd", "src/queue/sentinel.ts"],
])("whatever %s waits for has a kill point", (name, file) => {
  const body = new RegExp(`async function ${name}\\([^]*?\\n}\\n`).exec(readFileSync(file, "utf8"))![0];
  const calls = [...body.matchAll(/await [\w.]+\(/g)].map(([call]) => call);
  expect(calls.length).toBeGreaterThan(3);
  expect(calls.filter((call) => !KILL_PLACES.some(({ holds }) => holds.startsWith(call)))).toEqual([]);
});
