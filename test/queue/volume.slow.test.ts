// SPDX-License-Identifier: Apache-2.0
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { suiteDir } from "../support/suite-dir.ts";
import { startRig, type Rig } from "./rig.ts";
import { runVolume } from "./volume.ts";

const dir = suiteDir();
let rig: Rig;
beforeEach(async () => {
  rig = await startRig();
});
afterEach(() => rig.close());

it("40 activations with 1 MB of output each leave it in files: a job in Redis stays below 16 KB [D7]", async () => {
  const { memory, largestJob, delivered } = await runVolume(rig, dir, { count: 40, every: 20 });
  expect(delivered).toBe(40);
  expect(largestJob.bytes, largestJob.key).toBeLessThan(16_384);
  expect(memory[1]! - memory[0]!).toBeLessThan(20 * 65_536); // an output that was kept would be 1 MB each
  const ids = readdirSync(rig.storeRoot).filter((name) => name.startsWith("act-"));
  expect(ids).toHaveLength(40);
  for (const id of ids) expect(statSync(join(rig.storeRoot, id, "attempt-0/events.jsonl")).size).toBeGreaterThan(1_000_000);
});
