// SPDX-License-Identifier: Apache-2.0
import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { breakGuard } from "../../scripts/chaos/guards.ts";
import { D15_POINTS, KILL_PLACES, KILL_POINTS } from "../support/kill-points.ts";
import { runWithKills } from "../support/kill-rig.ts";
import { describeKills } from "../support/kill-suite.ts";
import { problemsOf } from "../support/kill-verdict.ts";

/** A minute on a machine of its own; the run itself gives up when nothing goes on. */
const TIMEOUT_MS = 3_600_000;
/** Those that have their like in no other test, and some of the others; all of them are killed at in the long test. */
const SOME = KILL_POINTS.filter((point, index) => index % 6 === 0 || D15_POINTS.some(({ name }) => name === point.name));

describeKills("the process at work is killed, at some of its moments", SOME, TIMEOUT_MS);

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
  const calls = [...body.matchAll(/await [\w.]+\((?:"\w+", )?/g)].map(([call]) => call);
  expect(calls.length).toBeGreaterThan(3);
  expect(calls.filter((call) => !KILL_PLACES.some(({ holds }) => holds.startsWith(call)))).toEqual([]);
});
