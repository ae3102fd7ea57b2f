// SPDX-License-Identifier: Apache-2.0
import { expect, it } from "vitest";
import { expectFound, fuzz } from "./planted-fault.ts";

// Faults in the redactor and its stream, which take more of the machine: fuzz.long.test.ts.
it("finds a fault planted in the reader within seconds, and the same case again [R42]", () => expectFound("reader"));

it("runs as many rounds as fit, says how many cases that were, and exits 0 when it finds nothing", async () => {
  const { exitCode, stdout } = await fuzz("--seconds 1 --seed 7");
  expect(exitCode, stdout).toBe(0);
  expect(stdout).toMatch(/fuzz: \d{3,} cases in .*readsEachLine \d+.*; faults: 0/);
});
