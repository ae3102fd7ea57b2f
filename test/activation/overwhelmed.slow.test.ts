// SPDX-License-Identifier: Apache-2.0
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { suiteDir } from "../support/suite-dir.ts";
import { overwhelm } from "./overwhelmed.ts";

const dir = suiteDir();

// A gigabyte, a million events, 100,000 files: overwhelmed.long.test.ts, which takes minutes.
describe("a session ends in bounded memory, with a result and a gap that says what was cut, and has", () => {
  it("a line of 64 MiB [A11]", async () => {
    const { result, grown, gaps } = await overwhelm(join(dir, "line"), `line ${64 * 1_048_576}\n`);
    expect(result.status).toBe("completed");
    expect(gaps("stdout_truncated")).toEqual([{ kept: 4, dropped: 0, lines_cut: 1 }]);
    expect(grown).toBeLessThan(60);
  });
});
