// SPDX-License-Identifier: Apache-2.0
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { CAUSE_CODES } from "../../src/contract/failure.ts";
import { gapCodeSchema } from "../../src/contract/observation.ts";
import { resultSchema, statusSchema } from "../../src/contract/result.ts";

const page = readFileSync(new URL("../../docs/results.md", import.meta.url), "utf8");

/** The names in the first column of the table below a heading. */
function listed(heading: string): string[] {
  const section = page.split(/^## /m).find((part) => part.startsWith(heading)) ?? "";
  const rows = [...section.matchAll(/^\| (`[^|]*) \|/gm)];
  return rows.flatMap(([, cell]) => [...cell!.matchAll(/`([a-z_]+)`/g)].map(([, name]) => name!));
}

describe("the page about results names, each once, every", () => {
  it.each<[what: string, heading: string, names: readonly string[]]>([
    ["status", "Status", ["status", ...statusSchema.options]],
    ["class", "Whose fault", ["cause_class", ...resultSchema.shape.cause_class.unwrap().options]],
    ["cause", "Causes of a failure", ["cause_code", ...CAUSE_CODES]],
    ["gap", "What could not be observed", gapCodeSchema.options],
  ])("%s", (_what, heading, names) => expect(listed(heading).sort()).toEqual([...names].sort()));
});
