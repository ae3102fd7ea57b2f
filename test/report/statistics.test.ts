// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { estimateMean, estimateMedian } from "../../src/report/estimate.ts";
import { holm, signFlipTest, signTest } from "../../src/report/paired-tests.ts";
import { passAtK } from "../../src/report/pass-at-k.ts";

describe("estimates", () => {
  it("say mean and median with an interval around them, and the same each time", () => {
    const values = Array.from({ length: 100 }, (_, at) => (at % 10) / 10);
    const found = estimateMean(values)!;
    expect(found.value).toBeCloseTo(0.45);
    // The normal interval: 0.45 -+ 1.96 * 0.287 / 10.
    expect(found.interval![0]).toBeCloseTo(0.394, 1);
    expect(found.interval![1]).toBeCloseTo(0.506, 1);
    expect(estimateMean(values)).toEqual(found);
    expect(estimateMedian([1, 2, 9])).toMatchObject({ value: 2, n: 3 });
  });

  it("give no interval for one value, and nothing for none", () => {
    expect(estimateMean([0.5])).toEqual({ value: 0.5, interval: null, n: 1 });
    expect(estimateMean([])).toBeNull();
  });
});

describe("pass@k and pass^k", () => {
  it("are the unbiased estimates, over the tasks with enough scored repeats", () => {
    // Of 4 repeats 2 pass: pass@2 = 1 - C(2,2)/C(4,2) = 5/6, pass^2 = 1/6; the second task has one repeat only.
    const found = passAtK([
      { scored: 4, passed: 2 },
      { scored: 1, passed: 1 },
    ]);
    expect(found.map(({ k }) => k)).toEqual([1, 2, 4]);
    expect(found[0]!.pass_at_k).toMatchObject({ value: 0.75, n: 2 });
    expect(found[1]!.pass_at_k.value).toBeCloseTo(5 / 6);
    expect(found[1]!.pass_hat_k.value).toBeCloseTo(1 / 6);
    expect(found[1]!.pass_at_k.n).toBe(1);
    expect(found[2]).toMatchObject({ pass_at_k: { value: 1 }, pass_hat_k: { value: 0 } });
    expect(passAtK([{ scored: 0, passed: 0 }])).toEqual([]);
  });
});

describe("paired tests", () => {
  it.each([
    // Exact binomial probabilities, two-sided.
    [0, 0, 1],
    [1, 0, 1],
    [5, 0, 0.0625],
    [6, 0, 0.03125],
    [9, 2, 0.0654296875],
    [10, 10, 1],
  ])("of signs: %i up and %i down have p = %f", (up, down, p) => expect(signTest(up, down)).toBeCloseTo(p, 9));

  it("of signs hold for thousands of pairs", () => {
    expect(signTest(5_000, 5_000)).toBe(1);
    expect(signTest(5_200, 4_800)).toBeCloseTo(6.593515598672442e-5, 12);
  });

  it("of mean differences are exact for few pairs and steady for many", () => {
    expect(signFlipTest([1, 1, 1, 1, 1, 1])).toBeCloseTo(2 / 64);
    expect(signFlipTest([3, 0, 0])).toBe(1);
    expect(signFlipTest([])).toBe(1);
    expect(signFlipTest(Array.from({ length: 40 }, (_, at) => (at % 2 === 0 ? 1 : -1)))).toBeGreaterThan(0.5);
    expect(signFlipTest(Array.from({ length: 40 }, (_, at) => (at % 8 === 0 ? -1 : 1)))).toBeLessThan(0.001);
  });

  it("are corrected by Holm for how many were asked", () => {
    expect(holm([0.01, null, 0.04, 0.03])).toEqual([0.03, null, 0.06, 0.06]);
    expect(holm([0.9, 0.8])).toEqual([1, 1]);
  });
});
