// SPDX-License-Identifier: Apache-2.0
import * as fc from "fast-check";
import { expect, it } from "vitest";
import { distributionOf } from "../../web/src/charts/histogram.ts";
import { histogramOption } from "../../web/src/charts/histogram-option.ts";
import { lanesOf, type Span } from "../../web/src/charts/lanes.ts";
import { DARK, LIGHT, MARKS } from "../../web/src/charts/palette.ts";
import { timelineHeight, timelineOption } from "../../web/src/charts/timeline-option.ts";
import { durationText, roughDurationText } from "../../src/contract/figures.ts";
import { bytesText, countText, rewardText, visible } from "../../web/src/charts/words.ts";

it("bins hold every value once, at most 24 of them, however values are spread", () => {
  fc.assert(
    fc.property(
      fc.array(fc.oneof(fc.nat(), fc.double({ min: -1e12, max: 1e12, noNaN: true })), { minLength: 1, maxLength: 300 }),
      (values) => {
        const { bins, count, most } = distributionOf(values)!;
        expect(bins.reduce((sum, bin) => sum + bin.count, 0)).toBe(count);
        expect(bins.length).toBeLessThanOrEqual(24);
        expect(bins.at(-1)!.to).toBeGreaterThanOrEqual(most);
      },
    ),
  );
  const far = distributionOf([...Array.from({ length: 1_000 }, () => 1), 1e9])!;
  expect(far.bins.at(-1)).toMatchObject({ count: 1, to: 1e9 });
  expect(distributionOf([])).toBeNull();
  expect(distributionOf([0, 0, 0])!.bins).toEqual([{ from: 0, to: 1, count: 3 }]);
  const rewards = distributionOf([-1, -0.95, 0, 0.3, 1])!; // 0.3 / 0.1 is a little less than 3
  const filled = rewards.bins.filter(({ count: some }) => some > 0).map(({ from, count: some }) => [Number(from.toFixed(6)), some]);
  expect(filled).toEqual([
    [-1, 2],
    [0, 1],
    [0.3, 1],
    [1, 1],
  ]);
  expect(distributionOf([-1e308, 1e308])!.bins.length).toBeLessThanOrEqual(24);
});

it("spans of one lane never overlap, and there are no more lanes than spans at once", () => {
  const span = fc.record({ worker: fc.constantFrom("w1", "w2"), from: fc.nat(100), length: fc.nat(40) });
  fc.assert(
    fc.property(fc.array(span, { maxLength: 60 }), (made) => {
      const spans = made.map(({ worker, from, length }, index): Span => ({
        id: `a${index}`,
        worker,
        from,
        to: from + length,
        mark: "completed",
      }));
      for (const { spans: placed, lanes } of lanesOf(spans)) {
        for (const one of placed)
          for (const other of placed)
            if (one !== other && one.lane === other.lane) expect(one.to <= other.from || other.to <= one.from).toBe(true);
        const atOnce = placed.map(
          ({ from }) => placed.filter((other) => other.from <= from && from < Math.max(other.to, other.from + 1)).length,
        );
        expect(lanes).toBeLessThanOrEqual(Math.max(1, ...atOnce));
      }
    }),
  );
});

it("the options of charts make no HTML, and a timeline of many workers stays low enough to look at", () => {
  const spans = Array.from({ length: 800 }, (_, index): Span => ({
    id: `a${index}`,
    worker: `w{x|${index % 40}}`,
    from: index,
    to: index + 90,
    mark: "failed",
  }));
  const workers = lanesOf(spans);
  expect(timelineHeight(workers)).toBeLessThan(900);
  const options = [timelineOption(workers, LIGHT, { narrow: false }), histogramOption(distributionOf([1, 2])!, DARK, countText)];
  for (const option of options) expect(option["tooltip"]).toMatchObject({ renderMode: "richText" });
  const told = (options[0]!["tooltip"] as { formatter: (at: object) => string }).formatter({
    seriesIndex: MARKS.indexOf("failed"),
    dataIndex: 0,
  });
  expect(told).not.toMatch(/[{}|]/);
});

it("words for figures", () => {
  expect([0, 999, 1_000, 59_000, 99_000, 3_599_000, 3_661_000, 180_000_000].map(durationText)).toEqual([
    "0 ms",
    "999 ms",
    "1.0 s",
    "59.0 s",
    "1 min 39 s",
    "59 min 59 s",
    "1 h 01 min",
    "2 d 2 h",
  ]);
  expect([0, 30_400, 90_000, 300_000, 7_200_000].map(roughDurationText)).toEqual(["0 s", "30 s", "1 min 30 s", "5 min", "2 h"]);
  expect([7, 9_999, 12_345, 1_234_567].map(countText)).toEqual(["7", "9,999", "12.3 k", "1.23 M"]);
  expect([12, 12_345, 12_345_678].map(bytesText)).toEqual(["12 B", "12.3 KB", "12.3 MB"]);
  expect(visible("a\u202Egnp.exe\u0007\nשלום")).toBe("a\\u202egnp.exe\\u0007\nשלום");
});

it.each([
  [1, "1"],
  [0, "0"],
  [1 / 3, "0.333"],
  [-0.5, "-0.5"],
  [0.00004, "0.000040"],
  [1250, "1,250"],
])("a reward of %s reads %s", (reward, text) => expect(rewardText(reward)).toBe(text));

/** Relative luminance (WCAG 2.2). */
function luminance(colour: string): number {
  const [red, green, blue] = [1, 3, 5].map((at) => {
    const part = Number.parseInt(colour.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  }) as [number, number, number];
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

it.each(Object.entries({ LIGHT, DARK }))("texts of the theme %s can be read, and its marks be seen", (_, palette) => {
  const contrast = (one: string, other: string): number => {
    const [low, high] = [luminance(one), luminance(other)].toSorted((a, b) => a - b) as [number, number];
    return (high + 0.05) / (low + 0.05);
  };
  for (const text of [palette.ink, palette.dim, palette.accent, palette.marks.failed])
    for (const ground of [palette.paper, palette.ground]) expect(contrast(text, ground)).toBeGreaterThanOrEqual(4.5);
  for (const mark of MARKS) if (mark !== "waiting") expect(contrast(palette.marks[mark], palette.paper)).toBeGreaterThanOrEqual(3); // it has its word beside it
  expect(contrast(palette.focus, palette.paper)).toBeGreaterThanOrEqual(3);
});
