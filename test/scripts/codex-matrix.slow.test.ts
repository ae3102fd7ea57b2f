// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import { PROFILED_VERSIONS } from "../../src/codex/profile.ts";
import { differencesIn, matrix } from "./matrix-command.ts";

// A few sessions of the matrix: two grants with finish called, for every kind of model, and agents. The whole of it: codex-matrix.long.test.ts.

const FEW = ["--only", "two grants, finish is called", "--only", "agents: one hands the work in"];

test.each(PROFILED_VERSIONS.map((version) => [version]))(
  "[R48] under Codex %s every kind of model sees its grants, hands in, and costs what the servers counted, agents included",
  async (version) => {
    const { code, reports } = await matrix("--version", version, ...FEW);
    expect(reports.flatMap(differencesIn)).toEqual([]);
    expect(code).toBe(0);
    const ran = reports.flatMap(({ rows }) => rows.map(({ scenario, kind }) => [scenario.split(",")[0], kind]));
    expect(ran).toEqual([
      ["two grants", "unknown"],
      ["two grants", "plain"],
      ["two grants", "code"],
      ["agents: one hands the work in", "code"],
      ["agents: one hands the work in by a script", "code"],
    ]);
  },
);
