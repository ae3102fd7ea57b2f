// SPDX-License-Identifier: Apache-2.0
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import type { Summary } from "../../src/rollout/summary.ts";
import { ROWS, started } from "./command-rig.ts";

it("rollouts whose session ran when the budget was spent are verified and closed; the others are seeded under a larger one [E17]", async () => {
  const { command, resources, flags } = await started({
    // So that verifying takes longer than the last look at what runs.
    faultFor: ({ path, nth }) => (path === "/verify" && nth === 0 ? { kind: "status", status: 503, retry_after: "2" } : undefined),
  });
  const summary = (): Summary => JSON.parse(readFileSync(join(command.out, "summary.json"), "utf8")) as Summary;
  const asked = (path: string): number => resources.calls.filter((call) => call.path === path && call.status === 200).length;

  const stopped = await command.run(ROWS, ...flags, "--max-tokens", "7");
  expect(stopped).toMatchObject({ code: 5 });
  const { completed } = summary().by_status; // two tokens each, three at once
  expect(completed).toBeGreaterThanOrEqual(4);
  expect(completed).toBeLessThanOrEqual(6);
  expect(summary()).toMatchObject({
    not_started: ROWS.length - completed,
    missing: 0,
    unverified: 0,
    budget: { stopped_by: "max_tokens" },
  });
  expect([asked("/verify"), asked("/close_session")]).toEqual([completed, completed]);

  const rest = await command.run(ROWS, ...flags, "--max-tokens", "70");
  expect(rest.code).toBe(0);
  expect(summary()).toMatchObject({ not_started: 0, unverified: 0, by_status: { completed: ROWS.length } });
  expect([asked("/seed_session"), asked("/verify"), asked("/close_session")]).toEqual([ROWS.length, ROWS.length, ROWS.length]);
}, 120_000);
