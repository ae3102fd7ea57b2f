// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { openEvidence } from "../../src/artifacts/open-evidence.ts";
import { histogram, REWARD_WIDTHS, TIME_WIDTHS } from "../../src/report/chart-options.ts";
import { gatherRun, type GatheredRun } from "../../src/report/gather.ts";
import { reportMarkdown } from "../../src/report/markdown.ts";
import { reportPage } from "../../src/report/page.ts";
import { tempDir } from "../support/temp-dir.ts";
import { hostileRun, madeResult, referenceRun, writeRun } from "./results-of.ts";

async function gathered(made = hostileRun(), total?: number): Promise<GatheredRun> {
  const out = tempDir();
  await writeRun(out, made.map(madeResult), total === undefined ? {} : { total });
  return gatherRun(out, { partial: false, passThreshold: 1, openEvidence });
}

describe("the report as a page", () => {
  it("turns no text of others into markup, in tables, details and charts", async () => {
    const page = await reportPage(await gathered());
    expect(page.match(/<script/g)).toHaveLength(1);
    expect(page).not.toMatch(/<img|onerror=alert\(1\)>/);
    expect(page).toContain("&lt;script&gt;alert(1)&lt;/script&gt;");
    expect(page).not.toMatch(/[\u202a-\u202e]/);
    expect(page).toContain("\\u202e");
  });

  it("says how it compares with the reference run", async () => {
    const page = await reportPage(await gathered(referenceRun()));
    const wanted = [
      "217 of 220 (98.6 %)",
      "of 220 expected; 1 more than once",
      "6,001",
      "ended without finish: 1; limit, without finish: 1; failed: 1",
    ];
    expect(wanted.filter((told) => !page.includes(told))).toEqual([]);
    expect(page).not.toContain("has not come to its end");
  });

  it("has a column for rewards where there are some, in Markdown too", async () => {
    const [scored, unscored] = [await gathered(), await gathered(referenceRun())];
    for (const write of [reportPage, reportMarkdown]) {
      const told = [await write(scored), await write(unscored)].map((text) => text.replace(/<[^>]*>|\s/g, ""));
      expect(told.map((text) => /Cause\|?Reward/.test(text))).toEqual([true, false]);
      expect(told[1]).toMatch(/Cause\|?Time/);
    }
  });

  it("says so when it is not of a whole run", async () => {
    const run = await gathered(referenceRun().slice(0, 200), 220);
    const told = "The run has not come to its end: 20 of 220 (9.1 %) rollouts have no result yet.";
    expect((await reportPage(run)).includes(told)).toBe(true);
    expect(reportMarkdown(run)).toContain(told);
  });

  it("stays small for thousands of rollouts, and says what it leaves out", async () => {
    const run = await gathered(Array.from({ length: 2_500 }, (_, at) => ({ id: `a-${at}`, finish: 1, modelCalls: 1 })));
    const page = await reportPage(run);
    expect(page.includes("2,500 with a result, of which the first 2,000 are here")).toBe(true);
    expect(page.length).toBeLessThan(3_000_000);
  });
});

describe("the report as Markdown", () => {
  it("keeps texts of others to their cells: no markup, no HTML, no line break", async () => {
    const markdown = reportMarkdown(await gathered());
    expect(markdown).not.toMatch(/<(script|img|b)\b/);
    const cells = (line: string): number => line.replaceAll("\\\\", "").replaceAll("\\|", "").split("|").length;
    for (const table of markdown.split("\n\n").filter((part) => part.startsWith("|"))) {
      const counts = table.trimEnd().split("\n").map(cells);
      expect(new Set(counts).size).toBe(1);
    }
  });
});

describe("histograms", () => {
  it("have at most 16 bins of a round width, and count every value once", () => {
    const times = Array.from({ length: 500 }, (_, at) => at * 1_234);
    const found = histogram(times, TIME_WIDTHS)!;
    expect(found.edges.length - 1).toBeLessThanOrEqual(16);
    expect(found.edges[1]! - found.edges[0]!).toBe(60_000);
    expect(found.counts.reduce((total, count) => total + count, 0)).toBe(500);
    expect(histogram([0, 1, 0.95, -0.2], REWARD_WIDTHS)!.counts.reduce((total, count) => total + count, 0)).toBe(4);
    expect(histogram([1e12], TIME_WIDTHS)!.counts.length).toBeLessThanOrEqual(17);
    expect(histogram([], TIME_WIDTHS)).toBeNull();
  });
});
