// SPDX-License-Identifier: Apache-2.0
import { expect, it } from "vitest";
import { D15_POINTS, KILL_POINTS } from "../support/kill-points.ts";
import { runWithKills } from "../support/kill-rig.ts";
import { describeKills } from "../support/kill-suite.ts";
import { problemsOf } from "../support/kill-verdict.ts";

const TIMES = 50;
/** Some ten minutes on a machine of its own. */
const TIMEOUT_MS = 4 * 3_600_000;

describeKills("the process at work is killed, at each of its moments", KILL_POINTS, TIMEOUT_MS);

it(
  "workers killed after Codex's exit, when it was read, saved, committed and delivered, 50 times each: none lost, none delivered twice, the attempts true [D15]",
  async () => {
    const kills = D15_POINTS.flatMap(({ name, phase }) => Array.from({ length: TIMES }, (_, n) => ({ name: `kill-${name}.${n}`, phase })));
    const { killed, left, secrets } = await runWithKills({ names: kills.map(({ name }) => name), workers: 3 });
    const problems = kills.flatMap(({ name, phase }) => problemsOf(killed.get(name), phase).map((problem) => `${name}: ${problem}`));
    expect(problems).toEqual([]);
    expect(left).toEqual([]);
    expect(secrets).toEqual([]);
  },
  TIMEOUT_MS,
);
