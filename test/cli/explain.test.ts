// SPDX-License-Identifier: Apache-2.0
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import type { ActivationResult } from "../../src/contract/result.ts";
import { rollcall } from "../support/rollcall-command.ts";
import { resultOf } from "../support/result-documents.ts";
import { tempDir } from "../support/temp-dir.ts";

let out: string;
const result = (id: string, task: string, more: Partial<ActivationResult> = {}): ActivationResult =>
  resultOf(id, { task_id: { taskset: "office", task_id: task }, ...more });

beforeEach(() => {
  out = tempDir();
  const rows = [
    result("act-run-memo", "memo", { status: "failed" }),
    result("act-run-memo", "memo", { generation: 1 }),
    result("act-run-report-1", "report"),
    result("act-run-report-2", "report"),
  ];
  // As a run that is being written leaves it: the last line is not complete.
  writeFileSync(join(out, "results.jsonl"), `${rows.map((row) => JSON.stringify(row)).join("\n")}\n{"schema":"rollcall.res`);
  mkdirSync(join(out, "artifacts/act-only-there"), { recursive: true });
  writeFileSync(join(out, "artifacts/act-only-there/result.json"), JSON.stringify(result("act-only-there", "there"), null, 2));
});

describe("rollcall explain", () => {
  it.each([
    ["an activation id", "act-run-memo", "act-run-memo: completed"],
    ["a task id", "memo", "act-run-memo: completed"],
    ["an id that was committed and not listed", "act-only-there", "act-only-there: completed"],
  ])("finds the last result of %s", async (_, id, begins) => {
    const { code, stdout, stderr } = await rollcall(["explain", id, "--out", out]);
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout.split("\n")[0]).toBe(begins);
  });

  it("reads a result.json by its path, and answers in JSON when asked", async () => {
    const { code, stdout } = await rollcall(["explain", join(out, "artifacts/act-only-there/result.json"), "--json"]);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ activation_id: "act-only-there", ending: { status: "completed" }, attempts: [] });
  });

  it.each([
    ["a misspelt id", ["act-run-mmo"], "did you mean act-run-memo"],
    ["a beginning of ids", ["act-run-report"], "did you mean act-run-report-1, act-run-report-2"],
    ["a task of several activations", ["report"], '2 activations have the task id "report"; name one: act-run-report-1, act-run-report-2'],
    ["something quite different", ["xyzzy-xyzzy-xyzzy"], "it holds e.g. act-run-memo, memo"],
  ])("says what there is for %s, with exit code 2", async (_, args, expected) => {
    const { code, stderr, stdout } = await rollcall(["explain", ...args, "--out", out]);
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr).toContain(expected);
  });

  it("says what to name when there is no such file, directory or result", async () => {
    expect(await rollcall(["explain", "act-run-memo"])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("there is no file act-run-memo"),
    });
    expect(await rollcall(["explain", "x", "--out", join(out, "none")])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("results.jsonl"),
    });
    const other = join(out, "other.json");
    writeFileSync(other, "[1]");
    expect(await rollcall(["explain", other])).toMatchObject({ code: 2, stderr: expect.stringContaining("holds no result") });
  });
});
