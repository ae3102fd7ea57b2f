// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import { filesToPlace } from "../../src/artifacts/placed-files.ts";

const HELLO = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";

test("files to place become bytes, with the mode they asked for", () => {
  expect(
    filesToPlace([
      { path: "a.txt", content: "é\0\n", executable: false },
      { path: "bin/run", content_base64: "AP8=", executable: true },
      { path: "empty", content: "", executable: false },
      { path: "checked", content: "hello", sha256: HELLO, executable: false },
    ]),
  ).toEqual([
    { path: "a.txt", bytes: Buffer.from([0xc3, 0xa9, 0, 10]), mode: 0o644 },
    { path: "bin/run", bytes: Buffer.from([0, 255]), mode: 0o755 },
    { path: "empty", bytes: Buffer.alloc(0), mode: 0o644 },
    { path: "checked", bytes: Buffer.from("hello"), mode: 0o644 },
  ]);
});

test.each([
  { path: "x/report.docx", content: "hullo", sha256: HELLO, executable: false },
  { path: "x/report.docx", url: "http://127.0.0.1/x", executable: false },
  { path: "x/report.docx", executable: false },
])("a file that cannot be placed is named: %j", (file) => {
  expect(() => filesToPlace([file])).toThrow(
    expect.objectContaining({ code: "file_not_usable", message: expect.stringContaining("x/report.docx") }),
  );
});
