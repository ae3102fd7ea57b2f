// SPDX-License-Identifier: Apache-2.0
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { safeFileNames } from "../../src/references/safe-names.ts";

describe("names of foreign files", () => {
  it.each([
    ["reference_files/ab12/Population v2.xlsx", "Population v2.xlsx"],
    ["Bob & Lisa SMITH – LTC ’24.pdf", "Bob & Lisa SMITH – LTC ’24.pdf"],
    ["../../etc/passwd", "passwd"],
    ["..", "_"],
    ["", "file"],
    [".bashrc", "_bashrc"],
    ["--help", "_help"],
    ["a\\b:c\n\u202egpj.exe", "a_b_c__gpj.exe"],
    ["name. ", "name"],
  ])("are readable and no paths: %j becomes %j", (given, name) => {
    expect(safeFileNames([given])).toEqual([name]);
  });

  it("stay apart when they are equal, also but for case or Unicode form, and keep their extensions", () => {
    expect(safeFileNames(["a/TB.xlsx", "b/TB.xlsx", "tb.XLSX", "x.tar.gz", "y/x.tar.gz", "caf\u00e9", "cafe\u0301"])).toEqual([
      "TB.xlsx",
      "TB~2.xlsx",
      "tb~3.XLSX",
      "x.tar.gz",
      "x~2.tar.gz",
      "caf\u00e9",
      "caf\u00e9~2",
    ]);
  });

  it("fit a file system and never collide, whatever they were", () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: "binary", maxLength: 400 }), { maxLength: 20 }), (given) => {
        const names = safeFileNames(given);
        for (const name of names) {
          expect(Buffer.byteLength(name)).toBeLessThanOrEqual(200);
          expect(name).toMatch(/^[^./\0-][^/\0]*$/u);
        }
        expect(new Set(names.map((name) => name.normalize("NFKC").toLowerCase())).size).toBe(given.length);
      }),
    );
  });
});
