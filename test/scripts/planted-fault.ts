// SPDX-License-Identifier: Apache-2.0
import { execa } from "execa";
import { expect } from "vitest";

export const fuzz = (args: string) => execa("node", ["dist/scripts/fuzz.js", ...args.split(" ")], { reject: false });

/** A fault planted there is found, and the line that the fuzzer prints finds it once more. */
export async function expectFound(plant: "redactor" | "stream" | "reader"): Promise<void> {
  const { exitCode, stdout } = await fuzz(`--seconds 30 --plant ${plant}`);
  expect(exitCode, stdout).toBe(1);
  const again = /again with: npm run fuzz -- (.*)/.exec(stdout)?.[1] ?? "";
  const repeated = await fuzz(again);
  expect(repeated.exitCode, repeated.stdout).toBe(1);
  expect(repeated.stdout).toContain("faults: 1");
}
