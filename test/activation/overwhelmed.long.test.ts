// SPDX-License-Identifier: Apache-2.0
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { suiteDir } from "../support/suite-dir.ts";
import { overwhelm } from "./overwhelmed.ts";

const dir = suiteDir();
const HOUR = 3_600_000;

describe("a session ends in bounded memory, with a result and a gap that says what was cut, and has", () => {
  it("a million events [A11]", { timeout: HOUR }, async () => {
    const { result, grown, gaps } = await overwhelm(join(dir, "events"), "events 1000000\n");
    expect(result.status).toBe("completed");
    const told = gaps("stdout_truncated") as { kept: number; dropped: number }[];
    expect(told.every(({ kept, dropped }) => kept + dropped === 1_000_004 && dropped > 400_000)).toBe(true);
    expect(told).toHaveLength(2); // of the file of events, and of the conversation
    expect(result.observations.gaps.length).toBeLessThan(1_100);
    expect(grown).toBeLessThan(250);
  });

  it("a workdir of 100,000 files, which are collected up to a limit and all removed [A11]", { timeout: HOUR }, async () => {
    const place = join(dir, "files");
    const { result, grown, gaps } = await overwhelm(place, "files 100000\n", { outputs: { paths: ["**"] } });
    expect(result.status).toBe("completed");
    expect(result.artifacts.filter(({ kind }) => kind === "output")).toHaveLength(2_000);
    expect(gaps("artifact_skipped")).toEqual([{ path: "out/*", why: "more than 2000 files match" }]);
    expect(result.evidence?.cleanup_error).toBeNull();
    const left = readdirSync(join(place, "state"), { recursive: true, withFileTypes: true });
    expect(left.filter((entry) => entry.isFile())).toEqual([]);
    expect(grown).toBeLessThan(200);
  });

  // The worst kind: outputs just short enough to stay whole in the result, which holds the first 64 MiB of them three times.
  it("a gigabyte of stdout [A11]", { timeout: HOUR }, async () => {
    const place = join(dir, "stdout");
    const { result, grown, gaps } = await overwhelm(place, "outputs 17500\n");
    expect(result.status).toBe("completed");
    const [file, conversation] = gaps("stdout_truncated") as { kept: number; dropped: number }[];
    for (const { kept, dropped } of [file!, conversation!]) expect(kept + dropped).toBe(17_504);
    expect(statSync(join(place, "artifacts", result.activation_id, "attempt-0/events.jsonl")).size).toBeLessThan(64 * 1_048_576);
    expect(grown).toBeLessThan(1_000);
  });
});
