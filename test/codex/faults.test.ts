// SPDX-License-Identifier: Apache-2.0
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { FAULTS, faultTable, outcomeOf } from "./faults.ts";
import { VERSIONS } from "./recordings.ts";

const PAGE = new URL("../../docs/results.md", import.meta.url);
const [BEGIN, END] = ["<!-- faults: written by npx vitest run test/codex/faults.test.ts -u -->\n\n", "\n<!-- /faults -->"];

describe.each(VERSIONS)("what a fault comes to with Codex %s", (version) => {
  it.each(FAULTS.map((fault) => ({ ...fault, wanted: typeof fault.is === "string" ? fault.is : fault.is[version] })))(
    "$fault: $wanted",
    async ({ wanted, ...fault }) => {
      expect(await outcomeOf(fault, version)).toBe(wanted);
    },
  );
});

it("the page about results has the table that the code makes", async () => {
  const page = readFileSync(PAGE, "utf8");
  const [begin, end] = [page.indexOf(BEGIN), page.indexOf(END)];
  expect([begin, end]).not.toContain(-1);
  const wanted = page.slice(0, begin + BEGIN.length) + (await faultTable()) + page.slice(end);
  await expect(wanted).toMatchFileSnapshot(fileURLToPath(PAGE));
});
