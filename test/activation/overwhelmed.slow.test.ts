// SPDX-License-Identifier: Apache-2.0
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { suiteDir } from "../support/suite-dir.ts";
import { overwhelm } from "./overwhelmed.ts";

const dir = suiteDir();

// A gigabyte, a million events, 100,000 files: overwhelmed.long.test.ts.
describe("a session ends in bounded memory, with a result and a gap that says what was cut, and has", () => {
  it("a line of 64 MiB [A11]", async () => {
    const { result, grown, gaps } = await overwhelm(join(dir, "line"), `line ${64 * 1_048_576}\n`);
    expect(result.status).toBe("completed");
    expect(gaps("stdout_truncated")).toEqual([{ kept: 4, dropped: 0, lines_cut: 1 }]);
    expect(grown).toBeLessThan(60);
  });

  it("50,000 events [A11]", async () => {
    const { result, grown, gaps } = await overwhelm(join(dir, "events"), "events 50000\n");
    expect(result.status).toBe("completed");
    const [{ kept, dropped }] = gaps("stdout_truncated") as [{ kept: number; dropped: number }];
    expect(kept + dropped).toBe(50_004);
    expect(result.response!.output.length).toBeLessThan(2 * kept);
    expect(result.observations.gaps.length).toBeLessThan(1_100);
    expect(grown).toBeLessThan(200);
  });

  it("a workdir of 10,000 files, which are collected up to a limit and all removed [A11]", async () => {
    const place = join(dir, "files");
    const { result, grown, gaps } = await overwhelm(place, "files 10000\n", { outputs: { paths: ["**"] } });
    expect(result.status).toBe("completed");
    expect(result.artifacts.filter(({ kind }) => kind === "output")).toHaveLength(2_000);
    expect(gaps("artifact_skipped")).toEqual([{ path: "out/*", why: "more than 2000 files match" }]);
    expect(result.evidence?.cleanup_error).toBeNull();
    const left = readdirSync(join(place, "state"), { recursive: true, withFileTypes: true });
    expect(left.filter((entry) => entry.isFile())).toEqual([]);
    expect(grown).toBeLessThan(150);
  });
});
