// SPDX-License-Identifier: Apache-2.0
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { openEvidence } from "../../src/artifacts/open-evidence.ts";
import { compareRuns, type Comparison } from "../../src/report/compare.ts";
import { comparisonText } from "../../src/report/compare-text.ts";
import { gatherRun } from "../../src/report/gather.ts";
import { tempDir } from "../support/temp-dir.ts";
import { type Made, madeResult, writeRun } from "./results-of.ts";

const GATHER = { partial: false, passThreshold: 1, openEvidence };

async function compared(first: Made[], second: Made[]): Promise<Comparison> {
  const [a, b] = [join(tempDir(), "a"), join(tempDir(), "b")];
  await writeRun(a, first.map(madeResult), { settings: { model: "one", repeats: "1" } });
  await writeRun(b, second.map(madeResult), { settings: { model: "two", repeats: "1" }, runId: "run-2" });
  return compareRuns(await gatherRun(a, GATHER), await gatherRun(b, GATHER));
}

const measure = (comparison: Comparison, name: string) => comparison.measures.find((one) => one.name === name)!;
const tasks = (count: number, make: (at: number) => Partial<Made>): Made[] =>
  Array.from({ length: count }, (_, at) => ({ id: `act-${at}`, task: `t${at}`, finish: 1, ...make(at) }));

describe("a comparison of two runs", () => {
  it("pairs by task and finds a difference that is beyond noise, and no other", async () => {
    const found = await compared(
      tasks(40, (at) => ({ reward: at % 2 === 0 ? 0.5 : 0.6, runMs: 1_000 + (at % 7) })),
      tasks(40, (at) => ({ reward: at % 2 === 0 ? 0.8 : 0.7, runMs: 1_000 + ((at + 3) % 7) })),
    );
    expect(measure(found, "reward")).toMatchObject({ pairs: 40, higher: 40, lower: 0, beyond_noise: true, method: "sign_flip" });
    expect(measure(found, "reward").difference!.value).toBeCloseTo(0.2);
    expect(measure(found, "run time")).toMatchObject({ pairs: 40, beyond_noise: false });
    expect(measure(found, "called finish")).toMatchObject({ first: 1, second: 1, p: 1, method: "sign", beyond_noise: false });
    expect(found.settings).toEqual([{ name: "model", first: "one", second: "two" }]);
    expect(comparisonText(found)).toContain("Beyond noise: reward (higher in the second).");
  });

  it("tests outcomes by McNemar's exact test, and corrects for all measures that are compared", async () => {
    // 9 tasks got worse, 1 better: p = 22 / 1024 alone, not beyond noise once eight measures are asked.
    const found = await compared(
      tasks(30, (at) => ({ finish: at === 0 ? 0 : 1 })),
      tasks(30, (at) => ({ finish: at >= 1 && at <= 9 ? 0 : 1 })),
    );
    const called = measure(found, "called finish");
    expect(called).toMatchObject({ higher: 1, lower: 9, pairs: 30 });
    expect(called.p).toBeCloseTo(22 / 1024);
    expect(called.p_corrected).toBeGreaterThan(0.05);
    expect(called.beyond_noise).toBe(false);
    expect(comparisonText(found)).toContain("No difference is beyond noise.");
  });

  it("takes the mean of a task's repeats, and lists tasks that only one run has", async () => {
    const found = await compared(
      [
        { id: "a-r0", task: "a", reward: 0 },
        { id: "a-r1", task: "a", reward: 1 },
        { id: "gone", task: "gone", reward: 1 },
      ],
      [
        { id: "a", task: "a", reward: 1 },
        { id: "<new>", task: "\u202enew", reward: 1 },
      ],
    );
    expect(found).toMatchObject({ paired_tasks: 1, only_in_first: ["gone"], only_in_second: ["\u202enew"] });
    expect(measure(found, "reward")).toMatchObject({ first: 0.5, second: 1, pairs: 1 });
    expect(measure(found, "tokens in")).toMatchObject({ pairs: 0, first: null, p: null, p_corrected: null, beyond_noise: false });
    expect(comparisonText(found)).toContain("only in the second: 1: \\u202enew");
  });

  it("says that nothing can be compared when no task is in both", async () => {
    const text = comparisonText(await compared([{ id: "a" }], [{ id: "b" }]));
    expect(text).toContain("0 tasks are in both");
    expect(text).toContain("Nothing can be compared.");
  });
});
