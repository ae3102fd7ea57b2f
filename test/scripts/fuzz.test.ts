// SPDX-License-Identifier: Apache-2.0
import { execa } from "execa";
import { expect, it } from "vitest";

const fuzz = (args: string) => execa("node", ["dist/scripts/fuzz.js", ...args.split(" ")], { reject: false });

it.each(["redactor", "stream", "reader"])(
  "finds a fault planted in the %s within seconds, and the same case again [R42]",
  async (plant) => {
    const { exitCode, stdout } = await fuzz(`--seconds 30 --plant ${plant}`);
    expect(exitCode, stdout).toBe(1);
    const again = /again with: npm run fuzz -- (.*)/.exec(stdout)?.[1] ?? "";
    const repeated = await fuzz(again);
    expect(repeated.exitCode, repeated.stdout).toBe(1);
    expect(repeated.stdout).toContain("faults: 1");
  },
);

it("runs as many rounds as fit, says how many cases that were, and exits 0 when it finds nothing", async () => {
  const { exitCode, stdout } = await fuzz("--seconds 1 --seed 7");
  expect(exitCode, stdout).toBe(0);
  expect(stdout).toMatch(/fuzz: \d{3,} cases in .*readsEachLine \d+.*; faults: 0/);
});
