// SPDX-License-Identifier: Apache-2.0
import { afterEach, beforeEach, expect, it } from "vitest";
import { suiteDir } from "../support/suite-dir.ts";
import { startRig, type Rig } from "./rig.ts";
import { runVolume } from "./volume.ts";

const dir = suiteDir();
const MB = 1_048_576;
let rig: Rig;
beforeEach(async () => {
  // What takes a week in service: ended jobs leave while the run goes on.
  rig = await startRig({ keep_ended_ms: 20_000 });
});
afterEach(() => rig.close());

it("2,000 activations with 1 MB of output each leave the memory of Redis flat, its jobs small and its streams capped [D7]", async () => {
  const { memory, largestJob, longestStream, delivered } = await runVolume(rig, dir, { count: 2_000, every: 250 });
  expect(delivered).toBe(2_000);
  expect(largestJob.bytes, largestJob.key).toBeLessThan(16_384);
  // Between the 1,000th and the 2,000th a gigabyte went by; what may grow is a line for each in the run's own lists.
  expect(memory.at(-1)! - memory[3]!, memory.join(" ")).toBeLessThan(MB);
  // The ends of one run are one line each, for whoever follows it; everything else that is written at both ends is cut to a thousand.
  expect(longestStream.entries).toBeLessThan(longestStream.key.includes(":ended:") ? 2_001 : 1_200);
}, 3_600_000);
