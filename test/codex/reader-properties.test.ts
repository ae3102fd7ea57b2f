// SPDX-License-Identifier: Apache-2.0
import * as fc from "fast-check";
import { describe, it } from "vitest";
import { readStdout } from "../../src/codex/stdout.ts";
import { foldsToValidFacts, readsEachLine, storesWhatItRead } from "./reader-properties.ts";

/** `npm run fuzz` looks longer. */
const numRuns = 200;
const reader = { readStdout };

describe("for all output of Codex and all chunkings", () => {
  it("each line is read once and in order, the last one without a line break too, in bounded memory [A9 A11 A12]", () =>
    fc.assert(readsEachLine(reader), { numRuns }));

  it("events fold to items, calls and usage that are valid and of bounded size [A11]", () =>
    fc.assert(foldsToValidFacts(reader), { numRuns }));

  it("stored events are read as they were live", () => fc.assert(storesWhatItRead(reader), { numRuns }));
});
