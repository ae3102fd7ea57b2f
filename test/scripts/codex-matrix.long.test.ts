// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import { PROFILED_VERSIONS } from "../../src/codex/profile.ts";
import { SCENARIOS } from "../../scripts/codex-matrix/scenarios/index.ts";
import { differencesIn, matrix } from "./matrix-command.ts";

test("[R48] every scenario under every profiled Codex is as the servers counted, and as it should be", async () => {
  const { code, reports } = await matrix();
  expect(reports.map(({ version }) => version)).toEqual(PROFILED_VERSIONS);
  const sessions = SCENARIOS.reduce((sum, { kinds }) => sum + kinds.length, 0);
  expect(reports.map(({ rows }) => rows.length)).toEqual(PROFILED_VERSIONS.map(() => sessions));
  expect(reports.flatMap(differencesIn)).toEqual([]);
  expect(code).toBe(0);
}, 1_800_000);
