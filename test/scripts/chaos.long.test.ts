// SPDX-License-Identifier: Apache-2.0
import { execa } from "execa";
import { expect, it } from "vitest";
import type { Verdict } from "../../scripts/chaos/oracle.ts";

// What a run of this length can take and still end in a minute; `npm run chaos` has all of them.
const FAULTS = "worker_kill,worker_freeze,codex_kill,redis_freeze,producer_kill,model_cut,mcp_restart,cancel_running";

it("keeps every promise while workers, Codex, Redis and the producer die and freeze [D1]", async () => {
  const args = ["--tasks", "16", "--workers", "2", "--concurrency", "2", "--seed", "4", "--only", FAULTS, "--json"];
  const { stdout, stderr, exitCode } = await execa("node", ["dist/scripts/chaos.js", ...args], { reject: false });
  const report = JSON.parse(stdout) as Verdict & { faults: { injected: boolean }[] };
  expect(
    report.checks.flatMap(({ breaches }) => breaches),
    stderr,
  ).toEqual([]);
  expect(report.faults.filter(({ injected }) => injected).length).toBeGreaterThanOrEqual(4);
  expect(exitCode).toBe(0);
}, 400_000);
