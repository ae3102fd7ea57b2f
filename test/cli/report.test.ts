// SPDX-License-Identifier: Apache-2.0
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { processIdentity } from "../../src/host/process.ts";
import { madeResult, referenceRun, writeRun } from "../report/results-of.ts";
import { rollcall } from "../support/rollcall-command.ts";
import { tempDir } from "../support/temp-dir.ts";

let out: string;
beforeEach(async () => {
  out = tempDir();
  await writeRun(out, referenceRun().map(madeResult));
});

describe("the commands over a finished run", () => {
  it("write a page and Markdown, and change nothing else in the directory", async () => {
    const before = readdirSync(out);
    const { code, stdout, stderr } = await rollcall(["report", out]);
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout).toContain("Called finish: 217 (of 220 expected; 1 more than once)");
    expect(stdout).toContain(join(out, "report.html"));
    expect(readdirSync(out).sort()).toEqual([...before, "report.html", "report.md"].sort());
    expect(readFileSync(join(out, "report.md"), "utf8")).toContain("| called finish | 217 of 220 (98.6 %) |");
  });

  it("compare two runs in one JSON document", async () => {
    const { code, stdout } = await rollcall(["compare", out, out, "--json"]);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ schema: "rollcall.comparison/1", paired_tasks: 220, only_in_first: [], settings: [] });
  });

  it.each([
    ["a directory that holds no run", ["report"], /holds no run \(there is no manifest\.json\)/],
    ["no directory", ["export", "--format", "atif"], /there is no directory/],
    ["a format that there is none of", ["export", "--format", "atiff"], /expected responses, atif, openai-chat; did you mean atif\?/],
  ])("refuse %s with exit code 2 and what to do", async (what, [command = "", ...flags], says) => {
    const path = what === "no directory" ? join(out, "none") : tempDir();
    const { code, stdout, stderr } = await rollcall([command, path, ...flags]);
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr).toMatch(says);
  });

  it("refuse a run that still goes on, and take it with --partial", async () => {
    writeFileSync(join(out, ".lock"), JSON.stringify(processIdentity()));
    const refused = await rollcall(["report", out, "--json"]);
    expect([refused.code, refused.stdout]).toEqual([2, ""]);
    expect(refused.stderr).toContain("or say --partial for what is there so far");
    expect(JSON.parse((await rollcall(["report", out, "--json", "--partial"])).stdout)).toMatchObject({ partial: true });
  });
});
