// SPDX-License-Identifier: Apache-2.0
import { beforeAll, describe, expect, it } from "vitest";
import type { KILL_POINTS } from "./kill-points.ts";
import { runWithKills, type KillRun } from "./kill-rig.ts";
import { problemsOf, RIGHT } from "./kill-verdict.ts";

/** One run, killed once at each of these moments: each activation ends right, and nothing is left. */
export function describeKills(name: string, points: typeof KILL_POINTS, timeoutMs: number): void {
  describe(name, () => {
    let run: KillRun;
    beforeAll(async () => {
      run = await runWithKills({ names: points.map((point) => `kill-${point.name}.0`), workers: 3 });
    }, timeoutMs);

    it.each(points.map((point) => [point.title, RIGHT[point.phase], point] as const))("%s: %s", (_title, _right, point) => {
      expect(problemsOf(run.killed.get(`kill-${point.name}.0`), point.phase)).toEqual([]);
    });

    it("and nothing is left: no process, directory, control group, uid lock, socket or secret", () => {
      expect(run.left).toEqual([]);
      expect(run.secrets).toEqual([]);
    });
  });
}
