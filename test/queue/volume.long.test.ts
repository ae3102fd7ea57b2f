// SPDX-License-Identifier: Apache-2.0
import { afterEach, beforeEach, expect, it } from "vitest";
import { suiteDir } from "../support/suite-dir.ts";
import { startRig, type Rig } from "./rig.ts";
import { runVolume } from "./volume.ts";

const dir = suiteDir();
let rig: Rig;
beforeEach(async () => {
  // What takes a week in service: ended jobs leave while the run goes on.
  rig = await startRig({ keep_ended_ms: 2_000 });
});
afterEach(() => rig.close());

it("500 activations with 1 MB of output each leave Redis a line each, its jobs small and its streams capped [D7] [fault B13]", async () => {
  const { memory, largestJob, longestStream, delivered } = await runVolume(rig, dir, { count: 500, every: 100 });
  expect(delivered).toBe(500);
  expect(largestJob.bytes, largestJob.key).toBeLessThan(16_384);
  // What may grow is a line for each in the run's own lists; streams of what happened have not reached their ends yet at first.
  expect((memory.at(-1)! - memory[1]!) / 300, memory.join(" ")).toBeLessThan(1_024);
  // The ends of one run are one line each, for whoever follows it; everything else that is written at both ends is cut to a thousand.
  expect(longestStream.entries).toBeLessThan(longestStream.key.includes(":ended:") ? 501 : 1_200);
}, 3_600_000);
